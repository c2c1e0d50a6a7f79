// Replays a PyTorch snapshot's trace: every block with its true size, and the device's totals after every entry.
//
// The trace contains addresses and requested sizes. Replaying the allocator's own rules over an exact map of the
// segments gives the sizes of the blocks, so that totals and their peaks equal torch.cuda.memory_stats() to the byte.
// Blocks alive before the first entry are derived from the final `segments` and the trace. Unknown or contradictory
// data is counted in ReplayQuality and never stops the replay.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "import/pytorch_snapshot/model/snapshot.h"
#include "import/pytorch_snapshot/replay/segment_map.h"
#include "trace/data_quality.h"

namespace tidemark::pytorch {

/// Counts, or bytes according to the name. All zero for a complete trace that agrees with the final segments.
struct ReplayQuality {
  // Allocated before the first entry.
  std::uint64_t initial_blocks = 0;
  std::uint64_t initial_recorded_blocks =
      0;  ///< of these, with a stack: PyTorch was recording, and dropped the entries
  std::uint64_t initial_bytes = 0;
  std::uint64_t initial_segments = 0;
  bool has_entries = true;
  std::uint64_t uncertain_blocks = 0;  ///< of the initial ones: with an uncertain size
  std::uint64_t uncertain_bytes = 0;   ///< maximum total error of their sizes

  /// The file has the allocator's settings (torch 2.3 and later); otherwise max_split_size is the default, and
  /// roundup_power2_divisions is fitted.
  bool has_settings = true;

  // The setting expandable_segments was switched, or some pools have a separate allocator.
  std::uint64_t guessed_splits = 0;  ///< blocks of ordinary segments that would have another size by the other rule
  std::uint64_t guessed_bytes = 0;   ///< total difference of their sizes

  // Settled by later entries or by the final segments, so totals are right all the same.
  std::uint64_t sizes_corrected = 0;

  // The trace contradicts itself; missing entries are implied.
  std::uint64_t unknown_times = 0;  ///< entries without a time
  std::uint64_t clock_steps_back = 0;
  std::uint64_t largest_step_back_us = 0;
  std::uint64_t unknown_frees = 0;         ///< of addresses without a block in use
  std::uint64_t double_frees = 0;          ///< requested again
  std::uint64_t implied_requests = 0;      ///< completed, never requested
  std::uint64_t implied_completions = 0;   ///< requested, never completed, the memory used again
  std::uint64_t overlapping_blocks = 0;    ///< allocations that overlap a block in use
  std::uint64_t unexplained_gaps = 0;      ///< an allocation in the middle of free memory
  std::uint64_t truncated_blocks = 0;      ///< no room for the whole block
  std::uint64_t missing_segments = 0;      ///< an allocation outside every segment
  std::uint64_t overlapping_segments = 0;  ///< reservations that overlap a segment
  std::uint64_t unknown_segments = 0;      ///< released, not there
  std::uint64_t segments_in_use = 0;       ///< released with blocks in use in them
  std::uint64_t impossible_ranges = 0;     ///< unknown, size 0 or past the end of the address space; left out
  std::uint64_t free_size_mismatches = 0;  ///< a free names another size than the allocation
  std::uint64_t snapshot_mismatches = 0;   ///< `snapshot` entries with other active bytes than the replay

  // The end of the replay against the final segments.
  bool has_final_segments = true;
  std::uint64_t final_blocks_missing = 0;    ///< in use there, not in the replay
  std::uint64_t final_blocks_extra = 0;      ///< in use in the replay, not there
  std::uint64_t final_blocks_different = 0;  ///< another size, requested size or state
  std::uint64_t final_segments_missing = 0;
  std::uint64_t final_segments_extra = 0;

  /// Whether nothing is lost, guessed or contradictory.
  [[nodiscard]] bool exact() const;
  /// One for each count that is not zero.
  [[nodiscard]] std::vector<QualityIssue> issues() const;
};

/// Bytes of one device at one time. torch.cuda.memory_stats() has them as NAME_bytes.all.
struct MemoryTotals {
  std::uint64_t allocated = 0;       ///< blocks in use by the program
  std::uint64_t active = 0;          ///< also counts freed blocks that another stream still uses
  std::uint64_t reserved = 0;        ///< segments
  std::uint64_t requested = 0;       ///< of active blocks
  std::uint64_t inactive_split = 0;  ///< free blocks of ordinary segments that are not free as a whole
  bool operator==(const MemoryTotals&) const = default;
};

/// Place of an event in the trace.
struct TracePosition {
  std::optional<std::uint32_t> entry;  ///< index into DeviceTrace::entries; nullopt: before the first
  std::int64_t time_us = 0;            ///< of that entry, as written; of the first entry for anything before it
  StackId stack;         ///< of that entry; before the trace: the stack of the block or segment, if it survived
  bool implied = false;  ///< not in the trace: implied by later entries
};

struct ReplayBlock {
  std::uint32_t id = 0;  ///< 0, 1, 2, … in the order of the calls, for each device
  std::uint64_t address = 0;
  std::uint64_t size = 0;       ///< the block's true size
  std::uint64_t requested = 0;  ///< at most `size`
  std::uint16_t stream = 0;     ///< index into Snapshot::streams
  std::uint16_t pool = 0;       ///< index into Snapshot::pools
  bool pending = false;         ///< its free was requested already; only before the trace
};

struct ReplaySegment {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  SegmentKind kind = SegmentKind::ordinary;
  std::uint16_t stream = 0;
  std::uint16_t pool = 0;  ///< 0 if neither the entry nor the final segments contain it
};

struct ReplayOutOfMemory {
  std::uint64_t requested = 0;  ///< rounded by the allocator
  std::optional<std::uint64_t> device_free;
  std::uint16_t stream = 0;
  std::uint16_t pool = 0;
};

/// Receives the replay in the order of the trace; each call has the totals after it. The segments and blocks from
/// before the trace come first, without an entry, then the entries. Memory is reserved before its blocks and released
/// after them; a block is allocated once, then requested to be freed, then completed.
class ReplaySink {
 public:
  virtual ~ReplaySink() = default;
  virtual void segment_reserved(const ReplaySegment& segment, const TracePosition& when,
                                const MemoryTotals& totals) = 0;
  /// Releases part of the reserved memory, or all of it: the range counts.
  virtual void segment_released(const ReplaySegment& segment, const TracePosition& when,
                                const MemoryTotals& totals) = 0;
  virtual void block_allocated(const ReplayBlock& block, const TracePosition& when, const MemoryTotals& totals) = 0;
  virtual void free_requested(std::uint32_t block, const TracePosition& when, const MemoryTotals& totals) = 0;
  virtual void free_completed(std::uint32_t block, const TracePosition& when, const MemoryTotals& totals) = 0;
  virtual void out_of_memory(const ReplayOutOfMemory& event, const TracePosition& when, const MemoryTotals& totals) = 0;
  /// The program attached text to a block in use: the entry's user_metadata.
  virtual void annotated(std::uint32_t block, const TracePosition& when, const MemoryTotals& totals) = 0;
  /// Action::user_defined or Action::snapshot.
  virtual void marked(Action action, const TracePosition& when, const MemoryTotals& totals) = 0;
};

struct ReplaySummary {
  MemoryTotals start;  ///< before the first entry
  MemoryTotals end;
  MemoryTotals peak;  ///< each on its own
  ReplayQuality quality;
};

/// Replays the trace of `device`; for a device without a trace, its final blocks and segments count as from before the
/// trace. Reads the trace three times, or more if the allocator's settings are missing or were switched, and calls the
/// sink in the last. Time is proportional to the entries (times a logarithm if they are contradictory), memory to the
/// simultaneous blocks and segments and, for a trace without its beginning, to the addresses in it. Thread-safe.
ReplaySummary replay(const Snapshot& snapshot, std::int32_t device, ReplaySink& sink);

}  // namespace tidemark::pytorch
