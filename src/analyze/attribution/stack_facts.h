// What the frames of each stack tell, worked out once for each node of the tree of stacks.
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
  recomputation,  ///< torch.utils.checkpoint, where it computes a forward pass again
  backward,       ///< autograd's engine, and what hooks into its pass
  optimizer,      ///< a step of an optimizer, what scales or clips gradients for it
  data,           ///< a DataLoader, and what makes batches for it
};

/// Of a Python frame in this file, with the function's name, qualified or not: snapshots, and recordings of Python
/// before 3.11, have "step" where others have "Optimizer.step".
[[nodiscard]] FrameStep step_of_frame(std::string_view file, std::string_view function);

/// Of a native frame that has a name: PyTorch's snapshots with stacks "all".
[[nodiscard]] FrameStep step_of_native_frame(std::string_view function);

/// Of a Python frame that runs the hooks of Module.register_full_backward_hook(). Their autograd node is made just
/// before the module's call, so what it stands for is allocated after it.
[[nodiscard]] bool is_module_backward_hook(std::string_view file, std::string_view function);

/// The phase of what is called from a frame that is in `phase` itself. The innermost frame that says something decides,
/// except that a module's call is what its caller does: recomputation in a backward pass, data where a batch is made.
[[nodiscard]] Phase phase_below(Phase phase, FrameStep step);

struct StackFacts {
  Phase phase = Phase::other;
  Phase phase_in_node = Phase::backward;  ///< of a block that an autograd node allocates
  AllocationOrigin making = AllocationOrigin::nothing_known;
  bool in_backward_hook = false;  ///< of a module: what it does when its input's gradient is known
  ModulePathId module;            ///< the innermost one that has a name
  ModulePathId outermost;
  /// The lowest of the module's and of the frames' that it called; of all frames where no module has a name.
  ComponentRules::RuleIndex component = ComponentRules::kNoRule;
};

/// By StackId.
[[nodiscard]] std::vector<StackFacts> read_stacks(const Definitions& definitions, const ModulePaths& modules,
                                                  const ComponentRules& rules);

}  // namespace tidemark
