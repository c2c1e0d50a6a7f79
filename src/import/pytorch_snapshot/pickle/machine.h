// The unpickling machine, for values only: it has no way to import, call or build anything.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "import/pytorch_snapshot/model/builder.h"
#include "import/pytorch_snapshot/pickle/input.h"
#include "import/pytorch_snapshot/pickle/memo.h"
#include "import/pytorch_snapshot/pickle/word.h"

namespace tidemark::pytorch {

/// Not thread-safe. Time and memory grow in proportion to the bytes read, whatever they say.
class PickleMachine {
 public:
  PickleMachine(PickleInput& input, SnapshotBuilder& builder);

  /// Carries out the pickle up to its STOP, and returns the value it stands for. The error is a sentence with the
  /// offset and without the file's name; when input.failure() is set, that is the cause.
  Result<Word> run();

  /// Where it stands in the stream: after run(), behind the pickle.
  [[nodiscard]] std::uint64_t offset() const { return input_.offset_of(at_); }

 private:
  // pickle_machine.cpp: the loop, and the opcodes that make up nearly all of a snapshot
  bool run_opcodes();
  bool more_input();
  bool grow();
  /// False where the target of the items cannot take them.
  bool set_items(Word* target, std::span<const Word> items);
  bool append(Word* target, std::span<const Word> items);
  bool replace(Word* target, Word changed);

  // pickle_opcode_steps.cpp: the others
  bool step(std::uint8_t opcode);
  bool integer(std::uint64_t size);
  bool text(std::uint64_t size);
  bool skip_bytes(std::uint64_t size);
  bool put(std::size_t index);
  bool make_tuple(std::size_t size);
  bool refuse(std::uint8_t opcode);
  [[nodiscard]] std::string global_name(std::uint8_t opcode);

  /// There is room: the loop sees to it.
  void push(Word word) { *top_++ = word; }
  /// How many words lie above the latest mark.
  [[nodiscard]] std::size_t above_mark() const { return static_cast<std::size_t>(top_ - floor_); }
  bool need(std::size_t words) { return above_mark() >= words || fail("the stack has too few values"); }
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
  SnapshotBuilder& builder_;
  PickleMemo memo_;
  std::vector<Word> stack_;
  std::vector<std::uint32_t> marks_;  // places in stack_
  Word* top_ = nullptr;               // behind the last
  Word* limit_ = nullptr;
  Word* floor_ = nullptr;  // the latest mark
  const std::uint8_t* at_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  const std::uint8_t* opcode_at_ = nullptr;
  std::string failure_;
};

}  // namespace tidemark::pytorch
