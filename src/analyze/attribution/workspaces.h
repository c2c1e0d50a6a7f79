// Memory that cuBLAS keeps to work in. PyTorch allocates it at the first call of each handle, and never frees it.
#pragma once

#include <vector>

#include "analyze/attribution/phase_runs.h"
#include "store/store.h"

namespace tidemark {

/// In order of birth. A block counts that is as big as PyTorch makes them (at::cuda::getChosenWorkspaceSize), is not
/// freed after its pass and the next were over, and is the only such one of its thread.
[[nodiscard]] std::vector<BlockId> find_workspaces(const Store& store, const PhaseRuns& runs);

}  // namespace tidemark
