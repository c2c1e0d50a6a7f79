// Recognizes the stacks of one recording in another, by the names of their frames; ids are only valid within one
// recording.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

/// When two frames are equal: their function and file (its name without folders) are, and the enabled properties below.
struct StackMatching {
  bool lines = true;            ///< so must be the line
  bool python_frames = true;    ///< Python frames count; otherwise they are left out of stacks
  bool native_frames = true;    ///< compare native frames; without either kind, stacks cannot be distinguished
  bool qualified_names = true;  ///< Python functions have their classes: "Net.forward"; otherwise "forward"
};

/// "make.<locals>.wrapper" and "Net.forward" as co_name has them: "wrapper", "forward".
[[nodiscard]] std::string_view plain_name(std::string_view function);

/// Properties that both recordings have. Frames of a kind are compared if both have some; native ones only if both come
/// from the same kind of source, because sources name them differently. Qualified names need recordings of Python 3.11
/// or later.
[[nodiscard]] StackMatching choose_matching(const Overview& a, const Overview& b, bool ignore_lines);

/// Gives stacks numbers, the same ones to the same stacks of several recordings. Not thread-safe.
class StackMatcher {
 public:
  static constexpr std::uint32_t kNoStack = 0;  ///< number of a stack without frames that count

  explicit StackMatcher(StackMatching matching) : matching_(matching) {}

  /// Numbers by StackId. Resolves every frame of the recording.
  std::vector<std::uint32_t> numbers(const Definitions& definitions, Symbols& symbols);

 private:
  [[nodiscard]] std::string key_of(const FrameName& frame) const;

  const StackMatching matching_;
  std::unordered_map<std::string, std::uint32_t> frames_;
  std::unordered_map<std::uint64_t, std::uint32_t> stacks_;  // by number of the caller's stack and of the frame
};

}  // namespace tidemark
