#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "analyze/common/stack_names.h"
#include "store/symbols.h"

namespace tidemark {
namespace {

using Stacks = std::vector<NamedStack*>;
using FrameKey = std::tuple<std::string, std::string, std::uint32_t>;  // of no frame: empty

enum class Direction : unsigned char { to_callers, to_callees };

// Callers of Python code are Python code: the interpreter's own frames between them say nothing.
std::optional<std::size_t> frame_at(const NamedStack& stack, Direction direction, std::size_t distance) {
  if (direction == Direction::to_callees) {
    const std::size_t index = stack.call_site + distance;
    return index < stack.frames.size() ? std::optional(index) : std::nullopt;
  }
  const bool python = stack.frames[stack.call_site].kind == Location::Kind::python;
  for (std::size_t index = stack.call_site; index-- > 0;) {
    if (python && stack.frames[index].kind != Location::Kind::python) continue;
    if (--distance == 0) return index;
  }
  return std::nullopt;
}

std::map<FrameKey, Stacks> group_by_frame(const Stacks& stacks, Direction direction, std::size_t distance) {
  std::map<FrameKey, Stacks> groups;
  for (NamedStack* stack : stacks) {
    FrameKey key;
    if (const auto index = frame_at(*stack, direction, distance)) {
      const FrameName& frame = stack->frames[*index];
      key = {frame.function, frame.file, frame.line};
    }
    groups[key].push_back(stack);
  }
  return groups;
}

// Of stacks that look alike. Those that are still alike where the others differ are told apart by a frame farther away.
void separate(const Stacks& stacks) {
  if (stacks.size() < 2) return;
  for (const Direction direction : {Direction::to_callers, Direction::to_callees}) {
    for (std::size_t distance = 1;; ++distance) {
      const auto groups = group_by_frame(stacks, direction, distance);
      if (groups.size() == 1 && groups.begin()->first == FrameKey()) break;  // all have ended
      if (groups.size() == 1) continue;
      for (const auto& [key, group] : groups) {
        for (NamedStack* stack : group) stack->apart = frame_at(*stack, direction, distance);
        separate(group);
      }
      return;
    }
  }
}

}  // namespace

void tell_apart(const std::vector<NamedStack*>& stacks) {
  std::map<std::string, Stacks> alike;
  for (NamedStack* stack : stacks) {
    if (!stack->frames.empty()) alike[shown_frames(*stack)].push_back(stack);
  }
  for (const auto& [shown, group] : alike) separate(group);
}

}  // namespace tidemark
