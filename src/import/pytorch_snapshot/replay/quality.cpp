#include "import/pytorch_snapshot/replay/quality.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace tidemark::pytorch {
namespace {

struct Contradiction {
  std::uint64_t ReplayQuality::*count;
  QualityId id;
};

constexpr Contradiction kContradictions[] = {
    {&ReplayQuality::unknown_frees, QualityId::unknown_frees},
    {&ReplayQuality::double_frees, QualityId::double_frees},
    {&ReplayQuality::implied_requests, QualityId::implied_requests},
    {&ReplayQuality::implied_completions, QualityId::implied_completions},
    {&ReplayQuality::overlapping_blocks, QualityId::overlapping_blocks},
    {&ReplayQuality::unexplained_gaps, QualityId::unexplained_gaps},
    {&ReplayQuality::truncated_blocks, QualityId::truncated_blocks},
    {&ReplayQuality::missing_segments, QualityId::missing_segments},
    {&ReplayQuality::overlapping_segments, QualityId::overlapping_segments},
    {&ReplayQuality::unknown_segments, QualityId::unknown_segments},
    {&ReplayQuality::segments_in_use, QualityId::segments_in_use},
    {&ReplayQuality::impossible_ranges, QualityId::impossible_ranges},
    {&ReplayQuality::free_size_mismatches, QualityId::free_size_mismatches},
    {&ReplayQuality::snapshot_mismatches, QualityId::snapshot_mismatches},
    {&ReplayQuality::final_blocks_missing, QualityId::final_blocks_missing},
    {&ReplayQuality::final_blocks_extra, QualityId::final_blocks_extra},
    {&ReplayQuality::final_blocks_different, QualityId::final_blocks_different},
    {&ReplayQuality::final_segments_missing, QualityId::final_segments_missing},
    {&ReplayQuality::final_segments_extra, QualityId::final_segments_extra},
};

}  // namespace

bool ReplayQuality::exact() const {
  for (const Contradiction& contradiction : kContradictions) {
    if (this->*contradiction.count != 0) return false;
  }
  return initial_segments == 0 && uncertain_blocks == 0 && guessed_splits == 0 && has_settings && has_final_segments;
}

std::vector<QualityIssue> ReplayQuality::issues() const {
  std::vector<QualityIssue> issues;
  const auto add = [&](QualityId id, std::uint64_t count, std::vector<QualityParam> params = {}) {
    if (count != 0) issues.push_back({id, count, std::move(params)});
  };
  constexpr std::uint64_t kMaxUs = std::numeric_limits<std::uint64_t>::max() / 1000;
  add(QualityId::trace_start_lost, initial_segments,
      {{"bytes", QualityBytes{initial_bytes}}, {"blocks", initial_blocks}});
  add(QualityId::uncertain_sizes, uncertain_blocks, {{"bytes", QualityBytes{uncertain_bytes}}});
  add(QualityId::guessed_sizes, guessed_splits, {{"bytes", QualityBytes{guessed_bytes}}});
  add(QualityId::sizes_corrected, sizes_corrected);
  add(QualityId::unknown_times, unknown_times);
  add(QualityId::clock_steps_back, clock_steps_back,
      {{"duration_ns", QualityDuration{std::min(largest_step_back_us, kMaxUs) * 1000}}});
  if (!has_settings) issues.push_back({QualityId::no_settings, std::nullopt});
  if (!has_final_segments) issues.push_back({QualityId::no_segments, std::nullopt});
  for (const Contradiction& contradiction : kContradictions) add(contradiction.id, this->*contradiction.count);
  return issues;
}

}  // namespace tidemark::pytorch
