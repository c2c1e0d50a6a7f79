// What a replay could not know, and what did not fit.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/data_quality.h"

namespace tidemark::pytorch {

/// Counts; bytes where the name says so. All zero for a complete trace that agrees with the final segments.
struct ReplayQuality {
  // The beginning of the trace is lost.
  std::uint64_t initial_blocks = 0;  ///< alive before the first entry
  std::uint64_t initial_bytes = 0;
  std::uint64_t initial_segments = 0;
  std::uint64_t uncertain_blocks = 0;  ///< of the initial ones: they may be larger or smaller than taken
  std::uint64_t uncertain_bytes = 0;   ///< by so much at most, together

  /// The file has the allocator's settings (torch 2.3 and later); else max_split_size is taken as
  /// its default, and roundup_power2_divisions as what fits.
  bool has_settings = true;

  // The setting expandable_segments was switched, or some pools have an allocator of their own.
  std::uint64_t guessed_splits = 0;  ///< blocks of ordinary segments that would have another size by the other rule
  std::uint64_t guessed_bytes = 0;   ///< by so much all together

  // Settled by later entries or by the final segments, so totals are right all the same.
  std::uint64_t sizes_corrected = 0;

  // The trace contradicts itself; what it must have left out is implied.
  std::uint64_t unknown_times = 0;  ///< entries without a time
  std::uint64_t clock_steps_back = 0;
  std::uint64_t largest_step_back_us = 0;
  std::uint64_t unknown_frees = 0;         ///< of addresses where no block is in use
  std::uint64_t double_frees = 0;          ///< requested again
  std::uint64_t implied_requests = 0;      ///< completed, never requested
  std::uint64_t implied_completions = 0;   ///< requested, never completed, the memory used again
  std::uint64_t overlapping_blocks = 0;    ///< an allocation where a block was still in use
  std::uint64_t unexplained_gaps = 0;      ///< an allocation in the middle of free memory
  std::uint64_t truncated_blocks = 0;      ///< no room for the whole block
  std::uint64_t missing_segments = 0;      ///< an allocation outside every segment
  std::uint64_t overlapping_segments = 0;  ///< reserved where a segment was still there
  std::uint64_t unknown_segments = 0;      ///< released, not there
  std::uint64_t segments_in_use = 0;       ///< released with blocks in use in them
  std::uint64_t impossible_ranges = 0;     ///< unknown, size 0 or past the end of the address space; left out
  std::uint64_t free_size_mismatches = 0;  ///< a free names another size than the allocation
  std::uint64_t snapshot_mismatches = 0;   ///< `snapshot` entries whose active bytes differ from the replayed ones

  // The end of the replay against the final segments.
  bool has_final_segments = true;
  std::uint64_t final_blocks_missing = 0;    ///< in use there, not in the replay
  std::uint64_t final_blocks_extra = 0;      ///< in use in the replay, not there
  std::uint64_t final_blocks_different = 0;  ///< another size, requested size or state
  std::uint64_t final_segments_missing = 0;
  std::uint64_t final_segments_extra = 0;

  /// Nothing is lost, guessed or contradictory.
  [[nodiscard]] bool exact() const;
  /// One for each thing that is not as it should be.
  [[nodiscard]] std::vector<QualityIssue> issues() const;
};

}  // namespace tidemark::pytorch
