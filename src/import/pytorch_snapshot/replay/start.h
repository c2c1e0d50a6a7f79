// What was in use on a device before the first entry of its trace.
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

/// The pool of the segment that an entry of the trace reserves, where the final segments know it.
struct ReservedPool {
  std::uint32_t entry = 0;
  std::uint16_t pool = 0;
};

/// Which of the two entries of a free a trace has:
/// torch.cuda.memory._record_memory_history(skip_actions=…), of torch 2.9, leaves some kinds of entries out.
struct RecordedActions {
  bool requests = true;     ///< free_requested
  bool completions = true;  ///< free_completed
};

struct StartBlock {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t requested = 0;
  /// By so much the block may be larger or smaller at most: it was freed in the trace, and neither its neighbours nor
  /// the final state show its end. An allocation right behind it settles it.
  std::uint64_t slack = 0;
  StackId stack;  ///< where it survived to the final state
  std::uint16_t stream = 0;
  bool pending = false;
};

struct ReplayStart {
  std::vector<StartSegment> segments;  ///< in order of address; none for a complete trace
  std::vector<StartBlock> blocks;      ///< in order of address, inside the segments, not overlapping
  std::vector<ReservedPool> pools;     ///< in order of the entries, of other pools than the default
  std::vector<bool> unsplit_pools;     ///< by pool; none where there are no private ones
  bool has_ordinary = false;           ///< segments, at any time; of the default pool
  bool has_ordinary_private = false;   ///< of other pools
  bool has_expandable = false;
  bool has_private = false;  ///< of other pools than the default, as far as the file says
  RecordedActions recorded;

  /// Ordinary segments beside expandable ones or the setting for them: how blocks of the former split is not known.
  bool mixed = false;

  /// Whether a block of `pool` is all of the free block it was taken from, however large.
  [[nodiscard]] bool never_splits(std::uint16_t pool) const {
    return pool < unsplit_pools.size() && unsplit_pools[pool];
  }
};

/// Undoes the segment entries of `trace` from the final segments, and takes as initial blocks those that the trace
/// frees without having allocated them, and those of the final state that it never touches. Time n log n.
ReplayStart find_start(const Snapshot& snapshot, const DeviceTrace& trace, const AllocatorRules& rules);

/// Pools made by torch.cuda.MemPool(no_split=True) (torch 2.9), by index into Snapshot::pools. The file does not say
/// which those are; how the pool was used does: no block lies anywhere but at the start of what was reserved for it,
/// and memory was reserved although the rest behind a block would have done, or a final block has such a rest.
/// `initial`: reserved before the trace. `reserved`: in the order of the entries. Without evidence a pool is
/// taken as an ordinary one. Time n log n.
std::vector<bool> find_unsplit_pools(const Snapshot& snapshot, const DeviceTrace& trace, const AllocatorRules& rules,
                                     const std::vector<StartSegment>& initial,
                                     const std::vector<ReservedPool>& reserved);

}  // namespace tidemark::pytorch
