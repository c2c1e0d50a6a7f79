// Carries out a pickle, for values only: there is no way to import, call or build anything.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "import/pytorch_snapshot/pickle/input.h"
#include "import/pytorch_snapshot/pickle/memo.h"
#include "import/pytorch_snapshot/pickle/value.h"
#include "import/pytorch_snapshot/pickle/value_tables.h"

namespace tidemark::pytorch {

/// Makes what it likes of the lists and dicts of a pickle, as they are filled.
class ContainerBuilder {
 public:
  /// What `dict` is with these items (keys and values by turns). Tag::unset where that cannot be: see failure().
  virtual PickleValue set_items(PickleValue dict, std::span<const PickleValue> items) = 0;
  /// What `list` is with these items at its end, likewise.
  virtual PickleValue append(PickleValue list, std::span<const PickleValue> items) = 0;
  /// A sentence without the file's name; empty where nothing failed.
  [[nodiscard]] virtual const std::string& failure() const = 0;

 protected:
  ~ContainerBuilder() = default;
};

/// Not thread-safe. Time and memory grow in proportion to the bytes read, whatever they say.
class Unpickler {
 public:
  /// `tables` gets the texts, wide numbers and pairs that values refer to.
  Unpickler(PickleInput& input, PickleTables& tables, ContainerBuilder& builder);

  /// Carries out the pickle up to its STOP, and returns the value it stands for. The error is a sentence with the
  /// offset and without the file's name; when input.failure() is set, that is the cause.
  Result<PickleValue> run();

  /// How far in the stream it is: after run(), behind the pickle.
  [[nodiscard]] std::uint64_t offset() const { return input_.offset_of(at_); }

 private:
  // unpickler.cpp: the loop, and the opcodes that make up nearly all of a snapshot
  bool run_opcodes();
  bool more_input();
  bool grow();
  /// False where the target of the items cannot take them.
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
  /// The little-endian number at at_, which moves on. The padding makes reading beyond the end harmless.
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
