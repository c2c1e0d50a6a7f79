// Memory in use on a device before the first entry of its trace.
#pragma once

#include <cstdint>
#include <vector>

#include "allocator/rules.h"
#include "import/pytorch_snapshot/model/snapshot.h"
#include "import/pytorch_snapshot/replay/segment_map.h"

namespace tidemark::pytorch {

struct StartSegment {
  SegmentMap::Range range;
  StackId stack;
  std::uint16_t stream = 0;
  std::uint16_t pool = 0;
};

/// The pool of the segment that an entry of the trace reserves, if the final segments contain it.
struct ReservedPool {
  std::uint32_t entry = 0;
  std::uint16_t pool = 0;
};

/// The kinds of free entries in a trace: torch.cuda.memory._record_memory_history(skip_actions=…), of torch 2.9, leaves
/// some kinds of entries out.
struct RecordedActions {
  bool requests = true;     ///< free_requested
  bool completions = true;  ///< free_completed
};

struct StartBlock {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t requested = 0;
  /// Uncertainty of the block's size: it was freed in the trace, and neither its neighbours nor the final state show
  /// its end. An allocation right after it determines it.
  std::uint64_t slack = 0;
  StackId stack;  ///< if it survived to the final state
  std::uint16_t stream = 0;
  bool pending = false;
};

struct ReplayStart {
  std::vector<StartSegment> segments;  ///< in order of address; empty for a complete trace
  std::vector<StartBlock> blocks;      ///< in order of address, inside the segments, not overlapping
  std::vector<ReservedPool> pools;     ///< in order of the entries, of other pools than the default
  std::vector<bool> unsplit_pools;     ///< by pool; empty if there are no private ones
  bool has_ordinary = false;           ///< segments, at any time; of the default pool
  bool has_ordinary_private = false;   ///< of other pools
  bool has_expandable = false;
  bool has_private = false;  ///< the file mentions pools other than the default
  RecordedActions recorded;

  /// Ordinary segments besides expandable ones or the setting for them: the rule for splitting their blocks is unknown.
  bool mixed = false;

  /// Whether a block of `pool` is all of the free block it was taken from, however large.
  [[nodiscard]] bool never_splits(std::uint16_t pool) const {
    return pool < unsplit_pools.size() && unsplit_pools[pool];
  }
};

/// Undoes the segment entries of `trace` from the final segments. Initial blocks are those that the trace frees without
/// an allocation, and blocks of the final state that it never mentions. Time O(n log n).
ReplayStart find_start(const Snapshot& snapshot, const DeviceTrace& trace, const AllocatorRules& rules);

/// Pools made by torch.cuda.MemPool(no_split=True) (torch 2.9), by index into Snapshot::pools. The file does not
/// contain the option; it is inferred from the use of the pool: every block is at the start of a reservation, and
/// memory was reserved although the rest after a block would have sufficed, or a final block has such a rest.
/// `initial`: reserved before the trace. `reserved`: in the order of the entries. Without evidence a pool is an
/// ordinary one. Time O(n log n).
std::vector<bool> find_unsplit_pools(const Snapshot& snapshot, const DeviceTrace& trace, const AllocatorRules& rules,
                                     const std::vector<StartSegment>& initial,
                                     const std::vector<ReservedPool>& reserved);

}  // namespace tidemark::pytorch
