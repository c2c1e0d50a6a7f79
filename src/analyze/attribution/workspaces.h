// Memory that cuBLAS and cuBLASLt keep to work in. PyTorch allocates it at their first call in each thread, and never
// frees it.
#pragma once

#include <vector>

#include "analyze/attribution/phase_runs.h"
#include "store/store.h"

namespace tidemark {

/// In order of birth. A block counts that is as big as PyTorch makes them (at::cuda::getChosenWorkspaceSize), is not
/// freed after its pass and the next were over, and is the only such one of its thread. cuBLASLt's is known by
/// nn.Linear besides, which calls it.
[[nodiscard]] std::vector<BlockId> find_workspaces(const Store& store, const PhaseRuns& runs);

}  // namespace tidemark
