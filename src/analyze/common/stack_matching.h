// Recognizes the stacks of one recording in another. Their ids mean nothing there; the names of their frames do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

/// When two frames are the same: function and file (its name without folders) are, and what else is said here.
struct StackMatching {
  bool lines = true;            ///< so must be the line
  bool python_frames = true;    ///< Python frames count; otherwise they are left out of stacks
  bool native_frames = true;    ///< likewise; where neither count, stacks cannot be told apart
  bool qualified_names = true;  ///< Python functions have their classes: "Net.forward"; otherwise "forward"
};

/// "make.<locals>.wrapper" and "Net.forward" as co_name has them: "wrapper", "forward".
[[nodiscard]] std::string_view plain_name(std::string_view function);

/// What both recordings know. Frames of a kind count when both have some; native ones only when both come from the same
/// kind of source, for others name them differently. Qualified names: recordings of Python 3.11 and later have them.
[[nodiscard]] StackMatching choose_matching(const Overview& a, const Overview& b, bool ignore_lines);

/// Gives stacks numbers, the same ones to the same stacks of several recordings. Not thread-safe.
class StackMatcher {
 public:
  static constexpr std::uint32_t kNoStack = 0;  ///< number of a stack without frames that count

  explicit StackMatcher(StackMatching matching) : matching_(matching) {}

  /// By StackId. Resolves every frame of the recording.
  std::vector<std::uint32_t> numbers(const Definitions& definitions, Symbols& symbols);

 private:
  [[nodiscard]] std::string key_of(const FrameName& frame) const;

  const StackMatching matching_;
  std::unordered_map<std::string, std::uint32_t> frames_;
  std::unordered_map<std::uint64_t, std::uint32_t> stacks_;  // by number of the caller's stack and of the frame
};

}  // namespace tidemark
