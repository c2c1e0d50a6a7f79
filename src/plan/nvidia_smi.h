// nvidia-smi for programs that ask it for GPUs.
#pragma once

#include <string>

#include "base/result.h"
#include "plan/phantom_run.h"

namespace tidemark {

/// Writes a program `nvidia-smi` into the folder, which it makes: it lists the planned GPUs (`-L`) and answers
/// `--query-gpu`, as CSV; what it does not know is "[N/A]". Anything else gets a line for each GPU.
Result<void> write_nvidia_smi(const std::string& folder, const PhantomOptions& options);

}  // namespace tidemark
