#include "analyze/attribution/stack_facts.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>

#include "analyze/common/stack_matching.h"
#include "analyze/common/stack_names.h"

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
  const std::string_view file = definitions.text(location.file);
  const std::string_view function = definitions.text(location.function);
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

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Files of a folder, and their step.
struct Folder {
  std::string_view path;
  FrameStep step;
};

constexpr std::array kFolders = {
    Folder{"torch/optim/", FrameStep::optimizer},
    Folder{"torch/amp/grad_scaler.py", FrameStep::optimizer},
    Folder{"torch/cuda/amp/grad_scaler.py", FrameStep::optimizer},
    Folder{"torch/nn/utils/clip_grad.py", FrameStep::optimizer},
    Folder{"torch/utils/data/", FrameStep::data},
    Folder{"torchvision/datasets/", FrameStep::data},
    Folder{"torchvision/transforms/", FrameStep::data},
    Folder{"timm/data/", FrameStep::data},
    Folder{"transformers/data/", FrameStep::data},
    Folder{"datasets/", FrameStep::data},
    Folder{"webdataset/", FrameStep::data},
    Folder{"bitsandbytes/optim/", FrameStep::optimizer},
    Folder{"apex/optimizers/", FrameStep::optimizer},
    Folder{"opacus/optimizers/", FrameStep::optimizer},
};

FrameStep checkpoint_step(std::string_view name) {
  const bool again = is_one_of(name, {"backward", "unpack_hook", "unpack", "recompute_fn", "inner_unpack"});
  return again ? FrameStep::recomputation : FrameStep::checkpoint;
}

// FSDP, DDP and DeepSpeed work on gradients in hooks that are named so.
bool is_backward_hook(std::string_view file, std::string_view name) {
  return file.starts_with("torch/distributed/") &&
         (name.find("post_backward") != std::string_view::npos || name.find("pre_backward") != std::string_view::npos);
}

}  // namespace

std::vector<StackFacts> read_stacks(const Definitions& definitions, const ModulePaths& modules,
                                    const ComponentRules& rules) {
  std::vector<FrameFacts> frames;
  frames.reserve(definitions.locations.size());
  for (const Location& location : definitions.locations) {
    frames.push_back(read_frame(definitions, modules, rules, location));
  }
  std::vector<StackFacts> stacks;  // callers come before their callees
  stacks.reserve(definitions.stacks.size());
  for (const StackNode& node : definitions.stacks) {
    const StackFacts caller = node.parent.value < stacks.size() ? stacks[node.parent.value] : StackFacts{};
    stacks.push_back(node.location.value < frames.size() ? below(caller, frames[node.location.value]) : caller);
  }
  return stacks;
}

FrameStep step_of_frame(std::string_view file, std::string_view function) {
  const std::string_view path = installed_path(file);
  if (path.empty()) return FrameStep::none;
  const std::string_view name = plain_name(function);
  if (path == "torch/nn/modules/module.py") {
    return is_one_of(name, {"_wrapped_call_impl", "_call_impl"}) ? FrameStep::module_call : FrameStep::none;
  }
  if (path == "torch/utils/checkpoint.py") return checkpoint_step(name);
  if (path == "torch/autograd/__init__.py") {
    return is_one_of(name, {"backward", "grad"}) ? FrameStep::backward : FrameStep::none;
  }
  if (path == "torch/autograd/graph.py") {
    return name == "_engine_run_backward" ? FrameStep::backward : FrameStep::none;
  }
  if (is_backward_hook(path, name)) return FrameStep::backward;
  // zero_grad() is often called between the loss and the backward pass.
  if (path == "torch/optim/lr_scheduler.py" || name == "zero_grad") return FrameStep::none;
  const auto* const folder =
      std::find_if(kFolders.begin(), kFolders.end(), [&](const Folder& entry) { return path.starts_with(entry.path); });
  return folder == kFolders.end() ? FrameStep::none : folder->step;
}

FrameStep step_of_native_frame(std::string_view function) {
  return function.starts_with("torch::autograd::Engine::") ? FrameStep::backward : FrameStep::none;
}

bool is_module_backward_hook(std::string_view file, std::string_view function) {
  return function.starts_with("BackwardHook._set_user_hook.") && installed_path(file) == "torch/utils/hooks.py";
}

Phase phase_below(Phase phase, FrameStep step) {
  const bool in_backward = phase == Phase::backward || phase == Phase::recomputation;
  switch (step) {
    case FrameStep::none:
      return phase;
    case FrameStep::module_call:
      if (in_backward) return Phase::recomputation;
      return phase == Phase::data ? phase : Phase::forward;
    case FrameStep::checkpoint:
      return in_backward ? Phase::recomputation : phase;
    case FrameStep::recomputation:
      return Phase::recomputation;
    case FrameStep::backward:
      return Phase::backward;
    case FrameStep::optimizer:
      return Phase::optimizer;
    case FrameStep::data:
      return Phase::data;
  }
  return phase;
}

}  // namespace tidemark
