// Carries out a pickle, for values only: there is no way to import, call or build anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "import/pytorch_snapshot/large_tables.h"
#include "import/pytorch_snapshot/pickle/input.h"
#include "import/pytorch_snapshot/pickle/value.h"
#include "import/pytorch_snapshot/pickle/value_tables.h"

namespace tidemark::pytorch {

/// Not thread-safe.
class PickleMemo {
 public:
  [[nodiscard]] std::size_t size() const { return slots_.size(); }
  [[nodiscard]] bool is_set(std::size_t index) const { return index < slots_.size() && slots_[index] != 0; }

  /// For an index that is not set. False if the value cannot be kept: it is in the memo already, or the memo is full.
  bool put(std::size_t index, PickleValue& value) {
    if (index >= PickleValue::kMaxSlot) return false;
    const bool integer = value.tag() == Tag::integer;
    if ((integer ? integers_.size() : value.id()) > kMaxId) return false;
    if (index >= slots_.size()) slots_.resize(index + 1);
    if (!value.is_mutable()) {
      slots_[index] = integer ? keep_integer(value) : pack(value);
      return true;
    }
    if (value.slot() == PickleValue::kFetched) {
      slots_[index] = pack(value) | kFetchedBit;
      return true;
    }
    if (value.slot() != 0) return false;
    slots_[index] = pack(value);
    value = value.with_slot(static_cast<std::uint32_t>(index) + 1);
    return true;
  }

  /// `index` must be set.
  PickleValue get(std::size_t index) {
    const std::uint32_t packed = slots_[index];
    const auto tag = static_cast<Tag>(packed & 0xF);
    if (tag >= kFirstMutable) {
      if ((packed & kFetchedBit) == 0) slots_[index] = packed | kFetchedBit;
      return PickleValue(tag, packed >> kIdShift, PickleValue::kFetched);
    }
    if (tag == Tag::integer) return integers_[packed >> kIdShift];
    return PickleValue(tag, packed >> kIdShift);
  }

  /// Whether items may be added to the value, as far as the memo can determine. (An integer has other bits instead of a
  /// slot.)
  [[nodiscard]] bool may_change(PickleValue value) const {
    if (!value.is_mutable() || value.slot() == 0) return true;
    return value.slot() != PickleValue::kFetched && (slots_[value.slot() - 1] & kFetchedBit) == 0;
  }

  /// `before` became `after`, which takes over its slot. False if the memo is full.
  bool update(PickleValue before, PickleValue& after) {
    if (!before.is_mutable()) return true;  // it has no slot; an integer has other bits there
    after = after.with_slot(before.slot());
    if (before.slot() == 0) return true;
    if (after.id() > kMaxId) return false;
    slots_[before.slot() - 1] = pack(after);
    return true;
  }

  /// As make_room() of a column.
  void make_room(double share_read) { pytorch::make_room(slots_, share_read); }

 private:
  static constexpr std::uint32_t kFetchedBit = 1U << 4;
  static constexpr unsigned kIdShift = 5;
  static constexpr std::uint32_t kMaxId = (1U << (32 - kIdShift)) - 1;

  static std::uint32_t pack(PickleValue value) {
    return value.id() << kIdShift | static_cast<std::uint32_t>(value.tag());
  }

  /// Picklers memoize no integers; an integer in the memo keeps all its bits.
  std::uint32_t keep_integer(PickleValue value) {
    integers_.push_back(value);
    return static_cast<std::uint32_t>(integers_.size() - 1) << kIdShift | static_cast<std::uint32_t>(Tag::integer);
  }

  std::vector<std::uint32_t> slots_;  // id, fetched bit, tag; 0: not set
  std::vector<PickleValue> integers_;
};

/// Converts the lists and dicts of a pickle while they are filled.
class ContainerBuilder {
 public:
  /// The value of `dict` with these items (alternating keys and values). Tag::unset if it is invalid: see failure().
  virtual PickleValue set_items(PickleValue dict, std::span<const PickleValue> items) = 0;
  /// The value of `list` with these items appended. Tag::unset if it is invalid: see failure().
  virtual PickleValue append(PickleValue list, std::span<const PickleValue> items) = 0;
  /// A sentence without the file's name; empty if nothing failed.
  [[nodiscard]] virtual const std::string& failure() const = 0;

 protected:
  ~ContainerBuilder() = default;
};

/// Not thread-safe. Time and memory are proportional to the bytes read, whatever their content.
class Unpickler {
 public:
  /// `tables` gets the texts, wide numbers and pairs that values refer to.
  Unpickler(PickleInput& input, PickleTables& tables, ContainerBuilder& builder);

  /// Runs the pickle up to its STOP, and returns its value. The error is a sentence with the offset and without the
  /// file's name; if input.failure() is set, that is the cause.
  Result<PickleValue> run();

  /// How far in the stream it is: after run(), behind the pickle.
  [[nodiscard]] std::uint64_t offset() const { return input_.offset_of(at_); }

 private:
  // unpickler.cpp: the loop, and the opcodes that make up nearly all of a snapshot
  bool run_opcodes();
  bool more_input();
  bool grow();
  /// False if the target cannot take the items.
  bool set_items(PickleValue* target, std::span<const PickleValue> items);
  bool append(PickleValue* target, std::span<const PickleValue> items);
  bool replace(PickleValue* target, PickleValue changed);

  // rare_opcodes.cpp: the others
  bool rare_opcode(std::uint8_t opcode);
  bool integer(std::uint64_t size);
  bool text(std::uint64_t size);
  bool skip_bytes(std::uint64_t size);
  bool put(std::size_t index);
  bool make_tuple(std::size_t size);
  bool refuse(std::uint8_t opcode);
  [[nodiscard]] std::string global_name(std::uint8_t opcode);

  /// The loop keeps room for one value.
  void push(PickleValue value) { *top_++ = value; }
  /// How many values lie above the latest mark.
  [[nodiscard]] std::size_t above_mark() const { return static_cast<std::size_t>(top_ - floor_); }
  bool need(std::size_t values) { return above_mark() >= values || fail("the stack has too few values"); }
  void set_floor() { floor_ = stack_.data() + (marks_.empty() ? 0 : marks_.back()); }
  bool fail(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
    return false;
  }
  /// Reads the little-endian number at at_ and advances. The padding makes reading beyond the end harmless.
  template <typename T>
  T take() {
    T value;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  PickleInput& input_;
  PickleTables& tables_;
  ContainerBuilder& builder_;
  PickleMemo memo_;
  std::vector<PickleValue> stack_;
  std::vector<std::uint32_t> marks_;  // indexes into stack_
  PickleValue* top_ = nullptr;        // behind the last
  PickleValue* limit_ = nullptr;
  PickleValue* floor_ = nullptr;  // the latest mark
  const std::uint8_t* at_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  const std::uint8_t* opcode_at_ = nullptr;
  std::string failure_;
};

}  // namespace tidemark::pytorch
