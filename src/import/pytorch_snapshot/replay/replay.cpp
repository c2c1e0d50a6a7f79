#include "import/pytorch_snapshot/replay/replay.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "allocator/rules.h"
#include "import/pytorch_snapshot/replay/pass.h"
#include "import/pytorch_snapshot/replay/start.h"

namespace tidemark::pytorch {

namespace {

struct Survey {
  SplitGuess guess;
  LearnedSizes learned;
  std::size_t misfits = 0;  ///< sizes that the guess gets wrong
};

Survey survey(const Snapshot& snapshot, const DeviceTrace& trace, const ReplayStart& start, const AllocatorRules& rules,
              SplitGuess guess) {
  ReplayPass pass(trace, start, rules, guess, {}, nullptr);
  pass.run();
  pass.check_final(snapshot);
  const ReplayQuality& quality = pass.summary().quality;
  const std::size_t misfits =
      pass.learned().entries.size() + quality.overlapping_blocks + quality.unexplained_gaps + quality.truncated_blocks;
  return {guess, pass.learned(), misfits};
}

/// The settings of the allocator, the start that follows from them, and how well the trace fits.
struct Reading {
  AllocatorRules rules;
  ReplayStart start;
  Survey survey;
};

Reading read_with(const AllocatorSettings& settings, const Snapshot& snapshot, const DeviceTrace& trace) {
  const AllocatorRules rules =
      snapshot.recorded_devices.empty() ? AllocatorRules(settings) : AllocatorRules::exact_sizes();
  ReplayStart start = find_start(snapshot, trace, rules);
  // If ordinary segments are in private pools, those have separate allocators; other ordinary segments mean that the
  // setting changed.
  using enum SplitGuess;
  const std::array guesses =
      start.has_ordinary ? std::array{by_latest, by_setting, by_kind} : std::array{by_kind, by_setting, by_latest};
  Survey best = survey(snapshot, trace, start, rules, guesses[0]);
  for (std::size_t i = 1; start.mixed && best.misfits != 0 && i < guesses.size(); ++i) {
    Survey other = survey(snapshot, trace, start, rules, guesses[i]);
    if (other.misfits < best.misfits) best = std::move(other);
  }
  return {rules, std::move(start), std::move(best)};
}

/// If the file lacks the settings and blocks are not where the defaults put them: the best fitting divisions of
/// roundup_power2_divisions, assuming the same for all sizes.
Reading find_reading(const Snapshot& snapshot, const DeviceTrace& trace) {
  Reading best = read_with(snapshot.settings.value_or(AllocatorSettings{}), snapshot, trace);
  AllocatorSettings settings;
  for (std::uint64_t divisions = 2; !snapshot.settings && best.survey.misfits != 0 && divisions <= 64; divisions *= 2) {
    for (std::size_t interval = 0; interval < kRoundUpPowerOfTwoIntervals; ++interval) {
      settings.roundup_power2_divisions[std::uint64_t{1} << interval] = divisions;
    }
    Reading other = read_with(settings, snapshot, trace);
    if (other.survey.misfits < best.survey.misfits) best = std::move(other);
  }
  return best;
}

/// Gives the initial blocks the sizes that the survey found; counts blocks that stay uncertain.
void apply(const LearnedSizes& learned, ReplayStart& start, ReplayQuality& quality) {
  for (std::uint32_t i = 0; i < start.blocks.size(); ++i) {
    StartBlock& block = start.blocks[i];
    const auto found = learned.initial.find(i);
    if (found != learned.initial.end()) {
      // The survey gave it memory that was free; earlier than that it is bounded by the next initial block.
      const bool has_next = i + 1 < start.blocks.size();
      block.size = has_next ? std::min(found->second, start.blocks[i + 1].address - block.address) : found->second;
    } else if (block.slack != 0 && !learned.settled[i]) {
      ++quality.uncertain_blocks;
      quality.uncertain_bytes += block.slack;
    }
  }
}

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

ReplaySummary replay(const Snapshot& snapshot, std::int32_t device, ReplaySink& sink) {
  DeviceTrace none;
  none.device = device;
  const DeviceTrace* const found = snapshot.trace_of(device);
  const DeviceTrace& trace = found != nullptr ? *found : none;
  auto [rules, start, best] = find_reading(snapshot, trace);
  ReplayQuality uncertain;
  apply(best.learned, start, uncertain);
  std::vector<SizeCorrection> corrections;
  corrections.reserve(best.learned.entries.size());
  for (const auto& [entry, size] : best.learned.entries) corrections.push_back({entry, size});
  std::sort(corrections.begin(), corrections.end(),
            [](const SizeCorrection& a, const SizeCorrection& b) { return a.entry < b.entry; });

  ReplayPass pass(trace, start, rules, best.guess, corrections, &sink);
  pass.run();
  pass.check_final(snapshot);
  ReplaySummary summary = pass.summary();
  summary.quality.has_settings = snapshot.settings || trace.entries.empty() || !snapshot.recorded_devices.empty();
  summary.quality.uncertain_blocks = uncertain.uncertain_blocks;
  summary.quality.uncertain_bytes = uncertain.uncertain_bytes;
  summary.quality.sizes_corrected = best.learned.size();
  summary.quality.has_entries = !trace.entries.empty();
  summary.quality.unknown_times = trace.unknown_times;
  summary.quality.impossible_ranges += trace.unreadable_entries;
  return summary;
}

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
  std::vector<QualityParam> initial = {{"bytes", QualityBytes{initial_bytes}}, {"blocks", initial_blocks}};
  if (!has_entries) initial.push_back({"entries", std::uint64_t{0}});
  if (has_entries && initial_recorded_blocks != 0) initial.push_back({"recorded", initial_recorded_blocks});
  add(QualityId::trace_start_lost, initial_segments, std::move(initial));
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
