#include "analyze/attribution/stack_facts.h"

#include <string_view>

#include "analyze/attribution/frame_step.h"

namespace tidemark {
namespace {

struct FrameFacts {
  FrameStep step = FrameStep::none;
  ModulePathId module;
};

FrameFacts read_frame(const Definitions& definitions, const ModulePaths& modules, const Location& location) {
  if (location.kind != Location::Kind::python) return {};
  const auto text = [&](StringId id) {
    return id.value < definitions.strings.size() ? std::string_view(definitions.strings[id.value]) : std::string_view();
  };
  FrameFacts facts;
  facts.step = step_of_frame(text(location.file), text(location.function));
  if (location.nn_module.valid()) facts.step = FrameStep::module_call;
  facts.module = modules.of(location.nn_module);
  return facts;
}

}  // namespace

std::vector<StackFacts> read_stacks(const Definitions& definitions, const ModulePaths& modules) {
  std::vector<FrameFacts> frames;
  frames.reserve(definitions.locations.size());
  for (const Location& location : definitions.locations) {
    frames.push_back(read_frame(definitions, modules, location));
  }
  std::vector<StackFacts> stacks;  // callers come before what they call
  stacks.reserve(definitions.stacks.size());
  for (const StackNode& node : definitions.stacks) {
    StackFacts facts = node.parent.value < stacks.size() ? stacks[node.parent.value] : StackFacts{};
    if (node.location.value < frames.size()) {
      const FrameFacts& frame = frames[node.location.value];
      facts.phase = phase_below(facts.phase, frame.step);
      facts.phase_in_node = phase_below(facts.phase_in_node, frame.step);
      if (frame.module.valid()) facts.module = frame.module;
    }
    stacks.push_back(facts);
  }
  return stacks;
}

}  // namespace tidemark
