// Private pools whose blocks are never split.
#pragma once

#include <cstdint>
#include <vector>

#include "allocator/rules.h"
#include "import/pytorch_snapshot/model/snapshot.h"
#include "import/pytorch_snapshot/replay/start.h"

namespace tidemark::pytorch {

/// Pools made by torch.cuda.MemPool(no_split=True) (torch 2.9), by index into Snapshot::pools. The file does not say
/// which those are; how the pool was used does: no block lies anywhere but at the start of what was reserved for it,
/// and memory was reserved although the rest behind a block would have done, or a final block has such a rest.
/// `initial`: reserved before the trace. `reserved`: in the order of the entries. Without evidence a pool is
/// taken as an ordinary one. Time n log n.
std::vector<bool> find_unsplit_pools(const Snapshot& snapshot, const DeviceTrace& trace, const AllocatorRules& rules,
                                     const std::vector<StartSegment>& initial,
                                     const std::vector<ReservedPool>& reserved);

}  // namespace tidemark::pytorch
