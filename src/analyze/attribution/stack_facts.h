// Facts that follow from the frames of each stack, computed once for each node of the tree of stacks.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analyze/attribution/allocation_origin.h"
#include "analyze/attribution/attribution.h"
#include "analyze/attribution/component_rules.h"
#include "analyze/attribution/module_paths.h"
#include "trace/definitions.h"

namespace tidemark {

enum class FrameStep : std::uint8_t {
  none,
  module_call,    ///< of a torch.nn.Module
  checkpoint,     ///< torch.utils.checkpoint, in the forward pass or in the backward pass
  recomputation,  ///< torch.utils.checkpoint, when it runs a forward pass again
  backward,       ///< autograd's engine, and hooks of its pass
  optimizer,      ///< a step of an optimizer, scaling or clipping of gradients for it
  data,           ///< a DataLoader, and code that prepares batches for it
};

/// Step of a Python frame in this file, with the function's name, qualified or not: snapshots, and recordings of Python
/// before 3.11, have "step" instead of "Optimizer.step".
[[nodiscard]] FrameStep step_of_frame(std::string_view file, std::string_view function);

/// Step of a named native frame: PyTorch's snapshots with stacks "all".
[[nodiscard]] FrameStep step_of_native_frame(std::string_view function);

/// Whether a Python frame runs the hooks of Module.register_full_backward_hook(). Their autograd node is created just
/// before the module's call, so the matching block is allocated after the node.
[[nodiscard]] bool is_module_backward_hook(std::string_view file, std::string_view function);

/// The phase of code called from a frame that is in `phase` itself. The innermost frame with a phase decides, except
/// that a module's call has the phase of its caller: recomputation in a backward pass, data while preparing a batch.
[[nodiscard]] Phase phase_below(Phase phase, FrameStep step);

struct StackFacts {
  Phase phase = Phase::other;
  Phase phase_in_node = Phase::backward;  ///< phase of a block that an autograd node allocates
  AllocationOrigin making = AllocationOrigin::nothing_known;
  bool in_backward_hook = false;  ///< in a module's hook that runs when the gradient of its input is known
  ModulePathId module;            ///< the innermost one that has a name
  ModulePathId outermost;
  /// The lowest rule of the module and of the frames below it; of all frames if no module has a name.
  ComponentRules::RuleIndex component = ComponentRules::kNoRule;
};

/// By StackId.
[[nodiscard]] std::vector<StackFacts> read_stacks(const Definitions& definitions, const ModulePaths& modules,
                                                  const ComponentRules& rules);

}  // namespace tidemark
