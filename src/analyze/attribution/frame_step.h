// What a frame says about the part of the training step that its callees belong to.
#pragma once

#include <cstdint>
#include <string_view>

#include "analyze/attribution/attribution.h"

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

}  // namespace tidemark
