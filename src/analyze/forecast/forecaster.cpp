#include "analyze/forecast/forecaster.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "analyze/forecast/change_points.h"
#include "analyze/forecast/peak_growth.h"
#include "analyze/forecast/usage_history.h"

namespace tidemark {

namespace {

constexpr std::uint64_t kFewestForPattern = 8;
constexpr std::size_t kChangeCells = 96;
constexpr std::size_t kShortestPart = 8;
constexpr std::size_t kPeriodCells = 120;
// Minimum duration of growth, and minimum number of steps if they are known.
constexpr double kShortestGrowthSeconds = 60;
constexpr double kShortestGrowthSteps = 10;
// This many steps throughout are evidence for growth of any duration, because loading has no steps. Otherwise growth
// must have lasted longer for the same time left.
constexpr double kManySteps = 20;
constexpr double kAgePerTimeLeftOfManySteps = 1.6;
// Growth may end at any time. Of growth of age T, the share that lasts at least t longer is T / (T + t) if nothing else
// is known (Gott 1993); near the limit there is no time to wait for more evidence.
constexpr double kAgePerTimeLeft = 3;
constexpr double kAgePerTimeLeftSoon = 1.4;
constexpr double kSoonSeconds = 75;
constexpr double kSoonSteps = 25;
constexpr double kSoonForSteps = 300;  // seconds: slower steps leave time
constexpr double kEarlier = 0.05;      // of its age: time of the earlier comparison
constexpr double kCriticalSeconds = 60;
constexpr double kCriticalSteps = 20;
constexpr double kDependence = 3;
constexpr double kFlat = 0.02;            // share of used memory: smaller changes are ignored
constexpr std::size_t kFewestCells = 12;  // minimum to conclude that nothing grows although the peaks rise
constexpr double kWarmedUp = 0.5;         // maximum growth of the second half, relative to the first half's
constexpr double kBarelySlower = 3;       // times the growth so far: growth that saturates only after so much more
                                          // counts as steady
constexpr double kFewestToSlow = 16;      // cells: with fewer the two halves of a line differ by chance
constexpr double kFewRises = 0.5;         // of the cells: fewer rises are steps
constexpr double kTeeth = 0.1;            // of the peak: minimum fall between peaks
constexpr double kReleased = 0.5;         // of the earlier minimum

std::optional<double> age_in_steps(const PeakGrowth& growth) {
  if (!growth.steps) return std::nullopt;
  return *growth.steps * growth.evidence_seconds / growth.span_seconds;
}

// Minimum age of growth for an alarm, as a multiple of the time left; nullopt if no age suffices. Loading has no steps,
// so steps, if known, must have begun in its first half; if unknown, a jump may be the first step.
std::optional<double> needed_age(const PeakGrowth& growth, bool soon) {
  const std::optional<double> steps = age_in_steps(growth);
  if (steps ? !growth.steps_all_along : growth.cells.jumped) return std::nullopt;
  if (growth.evidence_seconds >= kShortestGrowthSeconds &&
      steps.value_or(kShortestGrowthSteps) >= kShortestGrowthSteps) {
    return soon ? kAgePerTimeLeftSoon : kAgePerTimeLeft;
  }
  if (soon && steps.value_or(0) >= kManySteps) return kAgePerTimeLeftOfManySteps;
  return std::nullopt;
}

// Whether the growth looked the same a little earlier. A cache that fills up may look like steady growth at one moment,
// but not at the next.
bool grew_before(const std::vector<UsageSpan>& spans, const PeakGrowth& growth, std::uint64_t limit_bytes) {
  const auto ago = static_cast<std::uint64_t>(kEarlier * growth.evidence_seconds * kNanosecondsPerSecond);
  std::vector<UsageSpan> before = spans;
  std::erase_if(before, [&](const UsageSpan& span) { return span.to_ns > spans.back().to_ns - ago; });
  const auto earlier = find_peak_growth(before, limit_bytes);
  return earlier && !earlier->ends_before(earlier->left_to(limit_bytes));
}

// Growth that may be steady: the second half of its stretch has, by chance, slightly less growth than the first. It
// may, but need not, end before the limit.
bool barely_slows(const PeakGrowth& growth) {
  if (growth.span_seconds < kFewestToSlow * growth.cell_seconds) return true;
  return growth.saturates_after && *growth.saturates_after >= kBarelySlower * growth.cells.grown;
}

// From the expected time and the bounds of the slope, limited by the resolution of steps and the length of a cell.
// Successive peaks are not independent, so Sen's interval is too narrow: by this factor on the training seeds.
Interval time_to_grow(const CellGrowth& growth, double bytes) {
  Interval cells;
  const double slope = growth.per_cell.value;
  const double rising = std::max(growth.rises, 2U);
  const double below = std::max(kDependence * (slope - growth.per_cell.low), slope / rising);
  const double above = std::max(kDependence * (growth.per_cell.high - slope), slope / rising);
  cells.expected = bytes / slope;
  cells.earliest = std::max(0.0, std::max(0.0, bytes - growth.noise) / (slope + above) - 1);
  if (below < slope) cells.latest = (bytes + growth.noise) / (slope - below) + 1;
  return cells;
}

Interval scaled(Interval interval, double factor) {
  interval.expected *= factor;
  interval.earliest *= factor;
  if (interval.latest) *interval.latest *= factor;
  return interval;
}

void tell_time_to_limit(RiskAssessment& risk, const PeakGrowth& growth, double left) {
  risk.seconds_to_limit = scaled(time_to_grow(growth.cells, left), growth.cell_seconds);
  if (growth.steps && *growth.steps > 0) {
    risk.steps_to_limit = scaled(*risk.seconds_to_limit, *growth.steps / growth.span_seconds);
  }
}

// Usage is far below its minimum in the first half of the growth: the grown memory was freed, for example with its
// process.
bool is_released(const std::vector<UsageSpan>& spans, const PeakGrowth& growth) {
  const auto length = static_cast<std::uint64_t>(growth.span_seconds * kNanosecondsPerSecond);
  std::optional<std::uint64_t> least;
  for (const UsageSpan& span : spans) {
    const std::uint64_t ago = spans.back().to_ns - span.to_ns;
    if (ago > length || ago < length / 2) continue;
    least = std::min(least.value_or(span.floor_bytes), span.floor_bytes);
  }
  return least && static_cast<double>(spans.back().last_bytes) < kReleased * static_cast<double>(*least);
}

// The pattern if the peaks do not grow.
UsagePattern pattern_without_growth(const UsageGrid& grid, const std::vector<std::size_t>& changes, bool repeats) {
  std::vector<double> highest = grid.peaks;
  for (std::size_t cell = 1; cell < highest.size(); ++cell) highest[cell] = std::max(highest[cell], highest[cell - 1]);
  const double now = highest.back();
  const std::size_t last = highest.size() - 1;
  const std::size_t middle = last / 2;
  const double first = highest[middle] - highest.front();
  const double second = now - highest[middle];
  const double halves = middle > 0 ? static_cast<double>(last - middle) / static_cast<double>(middle) : 1;
  if (second > kFlat / 4 * now && second < kWarmedUp * first * halves) return UsagePattern::warm_up;
  if (grid.peaks.size() < kFewestCells && second > kFlat * now) return UsagePattern::unknown;  // it may grow
  const std::size_t from = changes.empty() ? 0 : changes.back();
  const auto [low, high] =
      std::minmax_element(grid.floors.begin() + static_cast<std::ptrdiff_t>(from), grid.floors.end());
  const double top = *std::max_element(grid.peaks.begin() + static_cast<std::ptrdiff_t>(from), grid.peaks.end());
  if (repeats && top - *low > kTeeth * top) return UsagePattern::sawtooth;
  if (!changes.empty() && std::abs(grid.peaks.back() - grid.peaks.front()) > kFlat * now) return UsagePattern::level;
  return top - *high > kTeeth * top && repeats ? UsagePattern::sawtooth : UsagePattern::steady;
}

// Printed by `detectors_bench --seed 1 --seeds 20 --runs 4 --fit`: rows are levels, columns classes of evidence. 0.500
// for combinations that cannot occur.
constexpr double kRight[4][kEvidenceClasses] = {
    {0.815, 0.859, 0.918, 0.986, 0.500, 0.500, 0.500, 0.500},
    {0.854, 0.878, 0.938, 0.979, 0.924, 0.991, 0.992, 0.937},
    {0.500, 0.500, 0.500, 0.500, 0.875, 0.992, 0.999, 0.999},
    {0.500, 0.500, 0.500, 0.500, 0.900, 0.994, 0.998, 0.999},
};
constexpr std::size_t kHalf = kEvidenceClasses / 2;
constexpr double kClassEndsOfGrowth[kHalf - 1] = {1.5, 2.5, 5};
constexpr double kClassEndsOfRest[kHalf - 1] = {0.1, 0.3, 1};

}  // namespace

struct Forecaster::State {
  ForecastOptions options;
  UsageHistory history;
};

Forecaster::Forecaster(const ForecastOptions& options) : state_(std::make_unique<State>()) {
  state_->options = options;
}
Forecaster::~Forecaster() = default;
Forecaster::Forecaster(Forecaster&&) noexcept = default;
Forecaster& Forecaster::operator=(Forecaster&&) noexcept = default;

void Forecaster::add(const UsageSample& sample) {
  state_->history.add(sample);
}

RiskAssessment Forecaster::assess(std::optional<std::uint64_t> limit_bytes) const {
  const UsageHistory& history = state_->history;
  const ForecastOptions& options = state_->options;
  RiskAssessment risk;
  if (history.empty()) return risk;
  if (limit_bytes == 0) limit_bytes.reset();
  risk.used_bytes = history.latest().last_bytes;
  risk.sample_count = history.samples();
  risk.span_seconds = history.span_seconds();
  if (limit_bytes) risk.used_percent = 100 * static_cast<double>(risk.used_bytes) / static_cast<double>(*limit_bytes);
  if (risk.used_percent && *risk.used_percent >= options.threshold_percent) risk.level = RiskLevel::medium;
  if (history.samples() < kFewestForPattern || history.span_seconds() <= 0) return risk;

  const std::vector<UsageSpan> spans = history.spans();
  const UsageGrid grid =
      cut_into_cells(spans, history.from_ns(), std::min<std::size_t>(kChangeCells, history.samples() / 2));
  const std::vector<std::size_t> changes = find_change_points(grid.peaks, kShortestPart);
  risk.change_points = static_cast<std::uint32_t>(changes.size());
  if (!changes.empty()) {
    const double share = 1 - static_cast<double>(changes.back()) / static_cast<double>(grid.peaks.size());
    risk.span_seconds *= share;
    risk.sample_count = static_cast<std::uint64_t>(static_cast<double>(risk.sample_count) * share);
  }
  const std::size_t recent = std::min(spans.size(), 2 * kPeriodCells);
  const UsageGrid fine =
      cut_into_cells(spans, spans[spans.size() - recent].from_ns, std::max<std::size_t>(recent / 2, 1));
  if (const auto period = find_period(fine.peaks)) risk.period_seconds = *period * fine.cell_seconds;

  auto growth = find_peak_growth(spans, limit_bytes);
  const bool released = growth && is_released(spans, *growth);
  if (released) growth.reset();
  if (released) {
    risk.pattern = UsagePattern::released;
  } else if (!growth) {
    risk.pattern = pattern_without_growth(grid, changes, risk.period_seconds.has_value());
  } else {
    const auto cells = static_cast<double>(std::lround(growth->span_seconds / growth->cell_seconds));
    risk.pattern = growth->cells.rises < kFewRises * cells ? UsagePattern::steps : UsagePattern::growth;
    risk.growth_bytes_per_second = growth->bytes_per_second();
    risk.growth_error_bytes_per_second =
        (growth->cells.per_cell.high - growth->cells.per_cell.low) / 2 / growth->cell_seconds;
    risk.growth_seconds = growth->age_seconds;
    risk.span_seconds = growth->span_seconds;
    risk.sample_count = growth->samples;
  }
  if (growth && limit_bytes) {
    const double left = growth->left_to(*limit_bytes);
    if (growth->ends_before(left)) {
      if (barely_slows(*growth)) {
        tell_time_to_limit(risk, *growth, left);
        risk.seconds_to_limit->latest.reset();
        if (risk.steps_to_limit) risk.steps_to_limit->latest.reset();
      } else {
        risk.pattern = UsagePattern::warm_up;
      }
    } else {
      tell_time_to_limit(risk, *growth, left);
      const double seconds = risk.seconds_to_limit->expected;
      const auto within = [&](double most_seconds, double most_steps) {
        return seconds <= most_seconds ||
               (seconds <= kSoonForSteps && risk.steps_to_limit && risk.steps_to_limit->expected <= most_steps);
      };
      if (seconds <= options.horizon_seconds) {
        risk.level = std::max(risk.level, RiskLevel::medium);
        const auto needed = needed_age(*growth, within(kSoonSeconds, kSoonSteps));
        if (needed && growth->evidence_seconds >= *needed * seconds && grew_before(spans, *growth, *limit_bytes)) {
          risk.level = within(kCriticalSeconds, kCriticalSteps) ? RiskLevel::critical : RiskLevel::high;
        }
      }
    }
  }
  if (risk.pattern != UsagePattern::unknown) risk.confidence = calibrated_confidence(risk, options);
  return risk;
}

bool foresees_limit(const RiskAssessment& risk, const ForecastOptions& options) {
  return risk.level > RiskLevel::low && risk.seconds_to_limit &&
         risk.seconds_to_limit->expected <= options.horizon_seconds;
}

std::size_t evidence_class(const RiskAssessment& risk, const ForecastOptions& options) {
  const bool foreseen = foresees_limit(risk, options);
  const double ratio = foreseen ? risk.growth_seconds / std::max(risk.seconds_to_limit->expected, 1e-9)
                                : risk.span_seconds / options.horizon_seconds;
  const auto& ends = foreseen ? kClassEndsOfGrowth : kClassEndsOfRest;
  return (foreseen ? kHalf : 0) + static_cast<std::size_t>(std::count_if(std::begin(ends), std::end(ends),
                                                                         [&](double end) { return ratio >= end; }));
}

double calibrated_confidence(const RiskAssessment& risk, const ForecastOptions& options) {
  return kRight[static_cast<std::size_t>(risk.level)][evidence_class(risk, options)];
}

}  // namespace tidemark
