#include "import/pytorch_snapshot/replay/quality.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/units.h"

namespace tidemark::pytorch {
namespace {

struct Line {
  std::uint64_t ReplayQuality::*count;
  const char* kind;  ///< of the note
  const char* text;  ///< before the count
};

constexpr Line kContradictions[] = {
    {&ReplayQuality::unknown_frees, "unknown_frees", "frees of addresses where no block was in use"},
    {&ReplayQuality::double_frees, "double_frees", "blocks freed a second time"},
    {&ReplayQuality::implied_requests, "implied_requests", "frees completed that were never requested"},
    {&ReplayQuality::implied_completions, "implied_completions",
     "frees never completed although the memory was used again"},
    {&ReplayQuality::overlapping_blocks, "overlapping_blocks",
     "allocations over blocks that were still in use; those are taken as freed"},
    {&ReplayQuality::unexplained_gaps, "unexplained_gaps", "allocations in the middle of free memory"},
    {&ReplayQuality::truncated_blocks, "truncated_blocks", "blocks larger than the memory that was there for them"},
    {&ReplayQuality::missing_segments, "missing_segments",
     "allocations outside every segment; reserved bytes are too low"},
    {&ReplayQuality::overlapping_segments, "overlapping_segments",
     "segments reserved where another still was; that one is taken as released"},
    {&ReplayQuality::unknown_segments, "unknown_segments", "segments released that were not there"},
    {&ReplayQuality::segments_in_use, "segments_in_use", "segments released with blocks in use in them"},
    {&ReplayQuality::impossible_ranges, "impossible_ranges", "entries whose address and size are impossible; left out"},
    {&ReplayQuality::free_size_mismatches, "free_size_mismatches", "frees that name another size than the allocation"},
    {&ReplayQuality::snapshot_mismatches, "snapshot_mismatches",
     "snapshot entries whose active bytes differ from the replayed ones"},
    {&ReplayQuality::final_blocks_missing, "final_blocks_missing",
     "blocks of the final state that the trace does not produce"},
    {&ReplayQuality::final_blocks_extra, "final_blocks_extra",
     "blocks that the trace leaves in use and the final state lacks"},
    {&ReplayQuality::final_blocks_different, "final_blocks_different",
     "blocks whose size or state differs from the final state"},
    {&ReplayQuality::final_segments_missing, "final_segments_missing",
     "segments of the final state that the trace does not produce"},
    {&ReplayQuality::final_segments_extra, "final_segments_extra",
     "segments that the trace leaves reserved and the final state lacks"},
};

}  // namespace

bool ReplayQuality::exact() const {
  for (const Line& line : kContradictions) {
    if (this->*line.count != 0) return false;
  }
  return initial_segments == 0 && uncertain_blocks == 0 && guessed_splits == 0 && has_settings && has_final_segments;
}

std::vector<SourceNote> ReplayQuality::notes() const {
  std::vector<SourceNote> notes;
  const auto note = [&](const char* kind, const char* severity, std::uint64_t count, std::string text) {
    if (count != 0) notes.push_back({kind, severity, count, std::move(text)});
  };
  note("trace_start_lost", "warning", initial_segments,
       fmt::format("the trace begins with {} in use (blocks: {}, segments: {}); when these were allocated is not known",
                   format_bytes(initial_bytes), format_count(initial_blocks), format_count(initial_segments)));
  if (initial_segments != 0) notes.back().incomplete = true;
  note("uncertain_sizes", "warning", uncertain_blocks,
       fmt::format("blocks from before the trace whose size is uncertain: {}, by {} together at most",
                   format_count(uncertain_blocks), format_bytes(uncertain_bytes)));
  note(
      "guessed_sizes", "warning", guessed_splits,
      fmt::format("the setting expandable_segments did not hold for all memory at all times, and the file does not say "
                  "when; blocks whose size is the likelier one of two: {}, {} apart together",
                  format_count(guessed_splits), format_bytes(guessed_bytes)));
  note("sizes_corrected", "info", sizes_corrected,
       fmt::format("blocks whose size follows from later entries, not from the allocator's rules: {}",
                   format_count(sizes_corrected)));
  constexpr std::uint64_t kMostUs = std::numeric_limits<std::uint64_t>::max() / 1000;
  note("clock_steps_back", "info", clock_steps_back,
       fmt::format("times that the clock steps backwards: {}, by {} at most", format_count(clock_steps_back),
                   format_duration_ns(std::min(largest_step_back_us, kMostUs) * 1000)));
  if (!has_settings) {
    notes.push_back(
        {"no_settings", "warning", std::nullopt,
         "the file does not say how the allocator was set; sizes are right if max_split_size_mb was not set, "
         "and roundup_power2_divisions neither or for all sizes alike"});
  }
  if (!has_final_segments) {
    notes.push_back({"no_segments", "warning", std::nullopt, "the file has no segments to check the trace against"});
  }
  for (const Line& line : kContradictions) {
    const std::uint64_t count = this->*line.count;
    note(line.kind, "warning", count, fmt::format("{}: {}", line.text, format_count(count)));
    if (count != 0) notes.back().incomplete = true;
  }
  return notes;
}

}  // namespace tidemark::pytorch
