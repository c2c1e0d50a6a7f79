// The GPU that --gpu names.
#pragma once

#include <string>

#include "base/result.h"
#include "plan/gpu_profiles.h"

namespace tidemark::cli {

/// "auto" is the first GPU of this machine.
Result<GpuProfile> choose_gpu(const std::string& name);

/// "T4, V100-16GB, …", for help.
std::string gpu_names();

}  // namespace tidemark::cli
