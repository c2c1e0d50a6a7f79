// The profile of a GPU of this machine, as its driver says it.
#pragma once

#include "base/result.h"
#include "plan/gpu_profiles.h"

namespace tidemark {

/// Of the first GPU that the driver lists, which CUDA_VISIBLE_DEVICES may choose. Creates no context: nothing runs on
/// the GPU, and no memory of it is taken.
[[nodiscard]] Result<GpuProfile> profile_of_this_machine();

}  // namespace tidemark
