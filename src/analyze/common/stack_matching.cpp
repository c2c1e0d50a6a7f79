#include "analyze/common/stack_matching.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/inductor_file.h"

namespace tidemark {
namespace {

bool has_frames(const Overview& overview, bool python) {
  const std::vector<Location>& locations = overview.definitions.locations;
  return std::any_of(locations.begin(), locations.end(),
                     [&](const Location& location) { return (location.kind == Location::Kind::python) == python; });
}

/// Whether the interpreter had code.co_qualname: 3.11 and later. Snapshots have code.co_name, whatever the version.
bool has_qualified_names(const Overview& overview) {
  if (overview.source.kind != SourceKind::recording) return false;
  constexpr std::string_view kPython3 = "3.";
  const std::string_view version = overview.definitions.process.python_version;
  int minor = 0;
  if (version.starts_with(kPython3)) std::from_chars(version.data() + kPython3.size(), version.end(), minor);
  return minor >= 11;
}

}  // namespace

std::string_view plain_name(std::string_view function) {
  const std::size_t dot = function.rfind('.');
  return dot == std::string_view::npos ? function : function.substr(dot + 1);
}

StackMatching choose_matching(const Overview& a, const Overview& b, bool ignore_lines) {
  StackMatching matching;
  matching.lines = !ignore_lines;
  matching.python_frames = has_frames(a, true) && has_frames(b, true);
  matching.native_frames = a.source.kind == b.source.kind && has_frames(a, false) && has_frames(b, false);
  matching.qualified_names = has_qualified_names(a) && has_qualified_names(b);
  return matching;
}

std::string StackMatcher::key_of(const FrameName& frame) const {
  const bool python = frame.kind == Location::Kind::python;
  std::string key(1, python ? 'p' : 'n');
  key += python && !matching_.qualified_names ? plain_name(frame.function) : std::string_view(frame.function);
  key += '\0';
  key += base_name(frame.file);
  key += '\0';
  if (matching_.lines) key += std::to_string(frame.line);
  if (frame.graph != CompiledGraph::none) key += name_in(kCompiledGraphNames, frame.graph);
  return key;
}

std::vector<std::uint32_t> StackMatcher::numbers(const Definitions& definitions, Symbols& symbols) {
  constexpr std::uint32_t kLeftOut = 0;
  std::vector<std::uint32_t> frames;  // by location; kLeftOut, or from 1
  frames.reserve(definitions.locations.size());
  for (std::size_t location = 0; location < definitions.locations.size(); ++location) {
    const bool python = definitions.locations[location].kind == Location::Kind::python;
    if (!(python ? matching_.python_frames : matching_.native_frames)) {
      frames.push_back(kLeftOut);
      continue;
    }
    const FrameName& frame = symbols.name(LocationId{static_cast<std::uint32_t>(location)});
    // The file is named after its content, so names differ between recordings.
    if (python && is_inductor_file(frame.file.data(), frame.file.size())) {
      frames.push_back(kLeftOut);
      continue;
    }
    const auto next = static_cast<std::uint32_t>(frames_.size() + 1);
    frames.push_back(frames_.try_emplace(key_of(frame), next).first->second);
  }
  std::vector<std::uint32_t> numbers;  // callers come before their callees
  numbers.reserve(definitions.stacks.size());
  for (const StackNode& node : definitions.stacks) {
    const std::uint32_t caller = node.parent.value < numbers.size() ? numbers[node.parent.value] : kNoStack;
    const std::uint32_t frame = node.location.value < frames.size() ? frames[node.location.value] : kLeftOut;
    if (frame == kLeftOut) {
      numbers.push_back(caller);
      continue;
    }
    const auto next = static_cast<std::uint32_t>(stacks_.size() + 1);
    numbers.push_back(stacks_.try_emplace(std::uint64_t{caller} << 32 | frame, next).first->second);
  }
  return numbers;
}

}  // namespace tidemark
