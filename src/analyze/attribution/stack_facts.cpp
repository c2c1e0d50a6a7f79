#include "analyze/attribution/stack_facts.h"

#include <algorithm>
#include <string_view>

#include "analyze/attribution/frame_step.h"
#include "analyze/common/frame_origin.h"

namespace tidemark {
namespace {

struct FrameFacts {
  FrameStep step = FrameStep::none;
  AllocationOrigin making = AllocationOrigin::nothing_known;
  bool is_backward_hook = false;
  ModulePathId module;
  ComponentRules::RuleIndex component = ComponentRules::kNoRule;
};

FrameFacts read_frame(const Definitions& definitions, const ModulePaths& modules, const ComponentRules& rules,
                      const Location& location) {
  const auto text = [&](StringId id) {
    return id.value < definitions.strings.size() ? std::string_view(definitions.strings[id.value]) : std::string_view();
  };
  const std::string_view file = text(location.file);
  const std::string_view function = text(location.function);
  FrameFacts facts;
  if (location.kind == Location::Kind::named_native) facts.step = step_of_native_frame(function);
  if (location.kind != Location::Kind::python) return facts;
  facts.step = location.nn_module.valid() ? FrameStep::module_call : step_of_frame(file, function);
  facts.making = origin_of_frame(file, function);
  facts.is_backward_hook = is_module_backward_hook(file, function);
  facts.module = modules.of(location.nn_module);
  const std::string_view installed = installed_path(file);
  facts.component = facts.module.valid() ? modules.rules[facts.module.value]
                                         : rules.for_frame(installed.empty() ? file : installed, function);
  return facts;
}

StackFacts below(StackFacts facts, const FrameFacts& frame) {
  facts.phase = phase_below(facts.phase, frame.step);
  facts.phase_in_node = phase_below(facts.phase_in_node, frame.step);
  if (frame.step == FrameStep::module_call && facts.making != AllocationOrigin::per_sample_gradient) {
    facts.making = AllocationOrigin::nothing_known;
  }
  facts.making = std::max(facts.making, frame.making);
  facts.in_backward_hook = facts.in_backward_hook || frame.is_backward_hook;
  if (frame.module.valid()) {
    facts.module = frame.module;
    if (!facts.outermost.valid()) facts.outermost = frame.module;
    facts.component = frame.component;
  }
  facts.component = std::min(facts.component, frame.component);
  return facts;
}

}  // namespace

std::vector<StackFacts> read_stacks(const Definitions& definitions, const ModulePaths& modules,
                                    const ComponentRules& rules) {
  std::vector<FrameFacts> frames;
  frames.reserve(definitions.locations.size());
  for (const Location& location : definitions.locations) {
    frames.push_back(read_frame(definitions, modules, rules, location));
  }
  std::vector<StackFacts> stacks;  // callers come before what they call
  stacks.reserve(definitions.stacks.size());
  for (const StackNode& node : definitions.stacks) {
    const StackFacts caller = node.parent.value < stacks.size() ? stacks[node.parent.value] : StackFacts{};
    stacks.push_back(node.location.value < frames.size() ? below(caller, frames[node.location.value]) : caller);
  }
  return stacks;
}

}  // namespace tidemark
