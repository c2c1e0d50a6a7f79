#include "analyze/forecast/sample_growth.h"

#include <algorithm>

#include "analyze/leaks/leaks.h"
#include "analyze/leaks/series_growth.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kCells = 48;
constexpr std::uint64_t kSamplesPerCell = 3;
constexpr double kShorterStretch = 0.75;  // each one to the one before
constexpr double kSecondsOfGrowth = 120;
constexpr double kSecondsWithSteps = 20;
constexpr std::uint64_t kStepsOfGrowth = 20;
constexpr double kFasterBefore = 1.6;  // than in the stretch itself: growth that slows down
constexpr double kAboveEarlier = 0.5;  // share of the growth
constexpr double kLeastOfPeak = 1e-4;  // that counts as growth of a cell

// The least from `begin` on, over what there was until then.
double lasting_growth(const std::vector<double>& floors, std::size_t begin, std::size_t end) {
  const double from = *std::min_element(floors.begin() + static_cast<std::ptrdiff_t>(begin), floors.end());
  const double to = *std::min_element(floors.begin() + static_cast<std::ptrdiff_t>(end), floors.end());
  return to - from;
}

}  // namespace

std::optional<SampleGrowth> find_sample_growth(const std::vector<UsageSpan>& spans) {
  if (spans.empty()) return std::nullopt;
  const std::uint64_t now = spans.back().to_ns;
  const auto all_ns = static_cast<double>(now - spans.front().from_ns);
  double peak = 0;
  for (const UsageSpan& span : spans) peak = std::max(peak, static_cast<double>(span.peak_bytes));
  bool whole = true;
  for (double length = all_ns; length > 0; length *= kShorterStretch) {
    const std::uint64_t from = now - static_cast<std::uint64_t>(length);
    const auto first = std::lower_bound(spans.begin(), spans.end(), from,
                                        [](const UsageSpan& span, std::uint64_t time) { return span.from_ns < time; });
    std::uint64_t samples = 0;
    for (auto span = first; span != spans.end(); ++span) samples += span->samples;
    SampleGrowth found;
    found.seconds = length / kNanosecondsPerSecond;
    if (first != spans.end() && first->steps && spans.back().steps) found.steps = *spans.back().steps - *first->steps;
    const bool enough = found.steps ? *found.steps >= kStepsOfGrowth && found.seconds >= kSecondsWithSteps
                                    : found.seconds >= kSecondsOfGrowth;
    std::uint64_t cells = std::min(kCells, samples / kSamplesPerCell);
    if (found.steps) cells = std::min(cells, *found.steps / 2);
    if (!enough || cells < kMinAnalyzedSteps + 4) return std::nullopt;

    // Of what came before as much again, to see whether it grew faster then, and had been as high.
    const double before_ns = std::min(length, all_ns - length);
    const auto before = static_cast<std::size_t>(before_ns / length * static_cast<double>(cells));
    const auto start =
        now - static_cast<std::uint64_t>(length + length * static_cast<double>(before) / static_cast<double>(cells));
    const UsageGrid grid = cut_into_cells(spans, std::max(start, spans.front().from_ns), cells + before);
    const std::vector<double> floors(grid.floors.begin() + static_cast<std::ptrdiff_t>(before), grid.floors.end());
    const auto warmup = whole ? default_warmup(cells) : 1;
    whole = false;
    const auto growth = find_series_growth(floors, warmup, kLeastOfPeak * peak);
    if (!growth || growth->classification != GrowthClass::leak) continue;
    const double grown = lasting_growth(floors, warmup, floors.size() - 1);
    if (grown < kLeakFloorOfPeak * peak) continue;
    const double rate = growth->bytes_per_step.value;
    double high_before = 0;
    for (auto span = spans.begin(); span != first; ++span) {
      // What was least in a joined span says little about when: its floor is below what held at its end.
      high_before = std::max(high_before, static_cast<double>(span->floor_bytes));
    }
    if (before > 0) {
      high_before = std::max(high_before, *std::max_element(grid.floors.begin(),
                                                            grid.floors.begin() + static_cast<std::ptrdiff_t>(before)));
      if (before * 2 >= cells &&
          lasting_growth(grid.floors, 0, before) / static_cast<double>(before) > kFasterBefore * rate)
        continue;
    }
    if (*std::min_element(floors.end() - 2, floors.end()) - std::max(floors[warmup], high_before) <
        kAboveEarlier * grown)
      continue;
    found.cells = *growth;
    found.cell_seconds = grid.cell_seconds;
    return found;
  }
  return std::nullopt;
}

}  // namespace tidemark
