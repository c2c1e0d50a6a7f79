#include "import/pytorch_snapshot/replay_quality.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/units.h"

namespace tidemark::pytorch {
namespace {

struct Line {
  std::uint64_t ReplayQuality::*count;
  const char* text;  ///< after the count
};

constexpr Line kContradictions[] = {
    {&ReplayQuality::unknown_frees, "frees of addresses where no block was in use"},
    {&ReplayQuality::double_frees, "blocks freed a second time"},
    {&ReplayQuality::implied_requests, "frees completed that were never requested"},
    {&ReplayQuality::implied_completions, "frees never completed although the memory was used again"},
    {&ReplayQuality::overlapping_blocks, "allocations over blocks that were still in use; those are taken as freed"},
    {&ReplayQuality::unexplained_gaps, "allocations in the middle of free memory"},
    {&ReplayQuality::truncated_blocks, "blocks larger than the memory that was there for them"},
    {&ReplayQuality::missing_segments, "allocations outside every segment; reserved bytes are too low"},
    {&ReplayQuality::overlapping_segments, "segments reserved where another still was; that one is taken as released"},
    {&ReplayQuality::unknown_segments, "segments released that were not there"},
    {&ReplayQuality::segments_in_use, "segments released with blocks in use in them"},
    {&ReplayQuality::impossible_ranges, "entries whose address and size are impossible; left out"},
    {&ReplayQuality::free_size_mismatches, "frees that name another size than the allocation"},
    {&ReplayQuality::snapshot_mismatches, "snapshot entries whose active bytes differ from the replayed ones"},
    {&ReplayQuality::final_blocks_missing, "blocks of the final state that the trace does not produce"},
    {&ReplayQuality::final_blocks_extra, "blocks that the trace leaves in use and the final state lacks"},
    {&ReplayQuality::final_blocks_different, "blocks whose size or state differs from the final state"},
    {&ReplayQuality::final_segments_missing, "segments of the final state that the trace does not produce"},
    {&ReplayQuality::final_segments_extra, "segments that the trace leaves reserved and the final state lacks"},
};

}  // namespace

bool ReplayQuality::exact() const {
  for (const Line& line : kContradictions) {
    if (this->*line.count != 0) return false;
  }
  return initial_segments == 0 && uncertain_blocks == 0 && guessed_splits == 0 && has_settings && has_final_segments;
}

std::vector<std::string> ReplayQuality::sentences() const {
  std::vector<std::string> lines;
  if (initial_segments != 0) {
    lines.push_back(
        fmt::format("the trace begins when {} segments and {} blocks ({}) were there already: when these were "
                    "allocated is not known",
                    format_count(initial_segments), format_count(initial_blocks), format_bytes(initial_bytes)));
  }
  if (uncertain_blocks != 0) {
    lines.push_back(fmt::format("the size of {} of them is uncertain, by {} together at most",
                                format_count(uncertain_blocks), format_bytes(uncertain_bytes)));
  }
  if (guessed_splits != 0) {
    lines.push_back(fmt::format(
        "the setting expandable_segments did not hold for all memory at all times, and the file does not say when: the "
        "size of {} blocks is the likelier one of two, {} apart together",
        format_count(guessed_splits), format_bytes(guessed_bytes)));
  }
  if (!has_settings) {
    lines.emplace_back(
        "the file does not say how the allocator was set; sizes are right if max_split_size_mb was not set, and "
        "roundup_power2_divisions neither or for all sizes alike");
  }
  if (sizes_corrected != 0) {
    lines.push_back(
        fmt::format("{} blocks have a size other than the allocator's rules give; it follows from later entries",
                    format_count(sizes_corrected)));
  }
  if (clock_steps_back != 0) {
    constexpr std::uint64_t kMostUs = std::numeric_limits<std::uint64_t>::max() / 1000;
    lines.push_back(fmt::format("the clock steps backwards {} times, by {} at most", format_count(clock_steps_back),
                                format_duration_ns(std::min(largest_step_back_us, kMostUs) * 1000)));
  }
  if (!has_final_segments) lines.emplace_back("the file has no segments to check the trace against");
  for (const Line& line : kContradictions) {
    if (this->*line.count != 0) lines.push_back(fmt::format("{} {}", format_count(this->*line.count), line.text));
  }
  return lines;
}

}  // namespace tidemark::pytorch
