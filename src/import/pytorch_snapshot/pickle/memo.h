// The pickle's memo: what was written once and is referred to by number later. Four bytes a number.
//
// A list or dict is memoized before anything is in it (Python's pickler) or when it is complete (PyTorch's own). Its
// value remembers its slot, so that filling it updates the memo; what was fetched from the memo may not be filled any
// more: only objects that contain themselves would do that, and a snapshot has none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "import/pytorch_snapshot/large_tables.h"
#include "import/pytorch_snapshot/pickle/value.h"

namespace tidemark::pytorch {

/// Not thread-safe.
class PickleMemo {
 public:
  [[nodiscard]] std::size_t size() const { return slots_.size(); }
  [[nodiscard]] bool is_set(std::size_t index) const { return index < slots_.size() && slots_[index] != 0; }

  /// At an index that is not set.
  /// False when the value cannot be kept: it is in the memo already, or the memo is full.
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

  /// Whether more may be put into the value, as far as the memo knows. (An integer has other bits where its slot would
  /// be.)
  [[nodiscard]] bool may_change(PickleValue value) const {
    if (!value.is_mutable() || value.slot() == 0) return true;
    return value.slot() != PickleValue::kFetched && (slots_[value.slot() - 1] & kFetchedBit) == 0;
  }

  /// `before` became `after`, which takes over its slot. False when the memo is full.
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

  /// Picklers memoize no integers; where one is, it keeps all its bits.
  std::uint32_t keep_integer(PickleValue value) {
    integers_.push_back(value);
    return static_cast<std::uint32_t>(integers_.size() - 1) << kIdShift | static_cast<std::uint32_t>(Tag::integer);
  }

  std::vector<std::uint32_t> slots_;  // id, fetched bit, tag; 0: not set
  std::vector<PickleValue> integers_;
};

}  // namespace tidemark::pytorch
