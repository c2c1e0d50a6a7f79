#include "analyze/attribution/code_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "analyze/common/frame_origin.h"
#include "analyze/common/stack_matching.h"
#include "store/symbols.h"

namespace tidemark {
namespace {

bool is_of_pass(Phase phase) {
  return phase == Phase::forward || phase == Phase::backward || phase == Phase::recomputation;
}

// Empty where no frame is the program's own.
std::string line_of_stack(const Definitions& definitions, StackId stack) {
  const auto text = [&](StringId id) {
    return id.value < definitions.strings.size() ? std::string_view(definitions.strings[id.value]) : std::string_view();
  };
  const std::vector<LocationId> frames = frames_of(definitions, stack);
  const auto location = [&](LocationId id) {
    return id.value < definitions.locations.size() ? definitions.locations[id.value] : Location{};
  };
  const auto innermost = std::find_if(frames.rbegin(), frames.rend(), [&](LocationId id) {
    const Location frame = location(id);
    const std::string_view file = text(frame.file);
    return frame.kind == Location::Kind::python && !file.empty() && origin_of(file) == FrameOrigin::project;
  });
  if (innermost == frames.rend()) return "";
  const Location line = location(*innermost);
  std::string name = fmt::format("({}:{}", base_name(text(line.file)), line.line);
  if (innermost != frames.rbegin()) {
    const Location called = location(*(innermost - 1));
    const bool is_python = called.kind == Location::Kind::python && called.file.valid();
    if (is_python) name += fmt::format(": {}", plain_name(text(called.function)));
  }
  return name + ")";
}

}  // namespace

CodeLines code_lines_of_blocks(const Store& store, const Attribution& attribution) {
  CodeLines lines;
  std::unordered_map<StackId, std::uint32_t> of_stack;
  std::unordered_map<std::string, std::uint32_t> numbers;
  const auto number_of = [&](StackId stack) {
    std::string name = line_of_stack(store.definitions, stack);
    if (name.empty()) return CodeLines::kNone;
    const auto [entry, is_new] = numbers.try_emplace(name, static_cast<std::uint32_t>(lines.names.size()));
    if (is_new) lines.names.push_back(std::move(name));
    return entry->second;
  };
  lines.of_block.assign(store.blocks.count(), CodeLines::kNone);
  for (std::size_t block = 0; block < store.blocks.count(); ++block) {
    const Owner& owner = attribution.blocks[block];
    if (owner.module.valid() || !is_of_pass(owner.phase)) continue;
    const StackId stack = owner.forward_stack.valid() ? owner.forward_stack : store.blocks.stack[block];
    const auto [entry, is_new] = of_stack.try_emplace(stack, CodeLines::kNone);
    if (is_new) entry->second = number_of(stack);
    lines.of_block[block] = entry->second;
  }
  return lines;
}

}  // namespace tidemark
