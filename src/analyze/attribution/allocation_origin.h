// Purposes of allocations that follow from the code alone, independent of the phase: models, copies, per-sample
// gradients, gathered parameters.
#pragma once

#include <cstdint>
#include <string_view>

namespace tidemark {

enum class AllocationOrigin : std::uint8_t {
  nothing_known,
  gradient_bucket,      ///< of DistributedDataParallel, beside the gradients themselves
  input,                ///< moves batches to the device
  copy,                 ///< of a checkpoint that is saved, or of tensors by copy.deepcopy
  loaded_copy,          ///< tensors of a checkpoint that is being loaded
  model_copy,           ///< parameters that copy.deepcopy copies
  model,                ///< constructs, loads or moves modules
  gathered_parameter,   ///< of FSDP: shards of all ranks put together
  per_sample_gradient,  ///< Opacus
  foreach_step,         ///< of an optimizer, for many parameters at once
  fusable_step,         ///< the same, of an optimizer that has a fused step
};

/// Origin for a Python frame in this file, with the function's name, qualified or not. It also holds for callees, until
/// a frame with another origin, or the call of a module.
[[nodiscard]] AllocationOrigin origin_of_frame(std::string_view file, std::string_view function);

}  // namespace tidemark
