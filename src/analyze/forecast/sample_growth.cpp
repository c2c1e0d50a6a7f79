#include "analyze/forecast/sample_growth.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "analyze/common/trend.h"
#include "analyze/leaks/growth.h"
#include "analyze/leaks/leaks.h"

namespace tidemark {

namespace {

constexpr std::size_t kCellCounts[] = {48, 24, 14};  // fewer are longer: their least use is nearer to the end of a step
constexpr std::uint64_t kSamplesPerCell = 3;
constexpr std::uint64_t kStepsPerCell = 2;
constexpr double kShorterStretch = 0.75;  // each one to the one before
constexpr double kLongerStretch = 2.1;    // maximum ratio to the growing stretch
constexpr double kLongerCut = 1.25;       // each to the one before
constexpr double kSecondsOfGrowth = 95;
constexpr double kSecondsOfTrend = 400;  // if floors fluctuate
constexpr std::uint64_t kStepsOfGrowth = 20;
constexpr double kFasterBefore = 1.3;     // than in the stretch itself: growth that slows down
constexpr double kAboveEarlier = 0.5;     // share of the growth
constexpr double kMinOfPeak = 1e-4;       // minimum growth of a cell
constexpr double kFloorsAboveNoise = 3;   // minimum growth, times the average distance of floors from the lasting
                                          // memory
constexpr std::uint32_t kGrownCells = 7;  // a step has one end, a cell only its samples
constexpr double kYoungShare = 0.25;      // minimum share of the observed time for short growth
constexpr double kFilledUp = 0.35;        // of the used memory: growth from less than this is loading

// The increase of the minimum of all later floors between two cells.
double lasting_growth(const std::vector<double>& floors, std::size_t begin, std::size_t end) {
  const double from = *std::min_element(floors.begin() + static_cast<std::ptrdiff_t>(begin), floors.end());
  const double to = *std::min_element(floors.begin() + static_cast<std::ptrdiff_t>(end), floors.end());
  return to - from;
}

double least_of(const std::vector<double>& values, std::size_t begin, std::size_t end) {
  return *std::min_element(values.begin() + static_cast<std::ptrdiff_t>(begin),
                           values.begin() + static_cast<std::ptrdiff_t>(end));
}

double floor_noise(const std::vector<double>& floors, std::size_t begin) {
  double lasting = floors.back();
  double sum = 0;
  for (std::size_t cell = floors.size(); cell-- > begin;) {
    lasting = std::min(lasting, floors[cell]);
    sum += floors[cell] - lasting;
  }
  return sum / static_cast<double>(floors.size() - begin);
}

class Stretches {
 public:
  explicit Stretches(std::span<const UsageSpan> spans) : spans_(spans), now_(spans.back().to_ns) {
    all_ns_ = static_cast<double>(now_ - spans.front().from_ns);
    for (const UsageSpan& span : spans) peak_ = std::max(peak_, static_cast<double>(span.peak_bytes));
    samples_since_.resize(spans.size() + 1);
    for (std::size_t index = spans.size(); index-- > 0;) {
      samples_since_[index] = samples_since_[index + 1] + spans[index].samples;
    }
    highest_before_.resize(spans.size() + 1);
    for (std::size_t index = 0; index < spans.size(); ++index) {
      // The floor of a joined span is too low: its last value may be a floor too.
      highest_before_[index + 1] = std::max(highest_before_[index], static_cast<double>(spans[index].floor_bytes));
    }
  }

  [[nodiscard]] std::optional<SampleGrowth> longest() const {
    bool whole = true;
    std::optional<SampleGrowth> young;
    const double shortest = std::min(kSecondsOfGrowth * kNanosecondsPerSecond, kYoungShare * all_ns_);
    for (double length = all_ns_; length >= shortest && length > 0; length *= kShorterStretch) {
      std::size_t tried = 0;
      for (const std::size_t cells : kCellCounts) {
        const std::size_t possible = std::min(cells, most_cells(length));
        if (possible < kMinAnalyzedSteps + 4 || possible == tried) continue;
        tried = possible;
        const auto found = grows_in(length, possible, whole);
        if (!found || slows_down(found->seconds)) continue;
        if (found->cells.classification == GrowthClass::leak) return found;
        if (!young && length >= kYoungShare * all_ns_) young = found;
      }
      whole = false;
    }
    return young;
  }

 private:
  // Slowing growth may look steady for one division into cells: other divisions of similar length are also considered.
  [[nodiscard]] bool slows_down(double seconds) const {
    for (double length = seconds; length <= kLongerStretch * seconds; length *= kLongerCut) {
      const double length_ns = std::min(length * kNanosecondsPerSecond, all_ns_);
      for (const std::size_t cells : kCellCounts) {
        const std::size_t possible = std::min(cells, most_cells(length_ns));
        if (possible < kMinAnalyzedSteps + 4) continue;
        const UsageGrid grid = cut_into_cells(spans_, begin_of(length_ns), possible);
        const auto growth = find_series_growth(grid.floors, 1, kMinOfPeak * peak_);
        if (growth && growth->classification == GrowthClass::slowing) return true;
      }
    }
    return false;
  }
  [[nodiscard]] std::uint64_t begin_of(double length) const { return now_ - static_cast<std::uint64_t>(length); }
  [[nodiscard]] std::size_t first_in(double length) const {
    const auto first = std::ranges::lower_bound(spans_, begin_of(length), {}, &UsageSpan::from_ns);
    return std::min(spans_.size() - 1, static_cast<std::size_t>(first - spans_.begin()));
  }
  [[nodiscard]] std::optional<std::uint64_t> steps_in(double length) const {
    const auto& before = spans_[first_in(length)].steps;
    const auto& now = spans_.back().steps;
    if (!before || !now) return std::nullopt;
    return *now - *before;
  }
  [[nodiscard]] std::size_t most_cells(double length) const {
    const std::uint64_t by_samples = samples_since_[first_in(length)] / kSamplesPerCell;
    const auto steps = steps_in(length);
    return static_cast<std::size_t>(steps ? std::min(by_samples, *steps / kStepsPerCell) : by_samples);
  }

  [[nodiscard]] std::optional<SampleGrowth> grows_in(double length, std::size_t cells, bool whole) const {
    // Compares with the same length of time before: whether it grew faster then, and had been as high.
    const double cell = length / static_cast<double>(cells);
    const auto before = std::min(cells, static_cast<std::size_t>((all_ns_ - length) / cell));
    const UsageGrid grid =
        cut_into_cells(spans_, begin_of(length + static_cast<double>(before) * cell), cells + before);
    const std::vector<double> floors(grid.floors.begin() + static_cast<std::ptrdiff_t>(before), grid.floors.end());
    const std::uint32_t warmup = whole ? default_warmup(cells) : 1;
    const bool long_enough = length >= kSecondsOfTrend * kNanosecondsPerSecond;
    auto growth = find_series_growth(floors, warmup, kMinOfPeak * peak_);
    const bool clear = growth && growth->classification != GrowthClass::too_few && growth->grown_steps >= kGrownCells;
    if (!clear) growth = long_enough ? find_floor_trend(std::span(floors).subspan(warmup)) : std::nullopt;
    if (!growth || growth->classification != GrowthClass::leak) return std::nullopt;

    const auto grew_for = std::min<std::size_t>(growth->analyzed_steps, cells - growth->first_step);
    const double share = static_cast<double>(grew_for) / static_cast<double>(cells);
    SampleGrowth found;
    found.cells = *growth;
    found.cell_seconds = grid.cell_seconds;
    found.seconds = length / kNanosecondsPerSecond * share;
    if (const auto steps = steps_in(length))
      found.steps = static_cast<std::uint64_t>(static_cast<double>(*steps) * share);
    if (found.seconds < kSecondsOfGrowth || found.steps.value_or(kStepsOfGrowth) < kStepsOfGrowth) {
      found.cells.classification = GrowthClass::too_few;
    }
    const double grown = clear ? lasting_growth(floors, warmup, floors.size() - 1)
                               : growth->bytes_per_step.value * static_cast<double>(growth->analyzed_steps);
    const double now = least_of(floors, floors.size() - 2, floors.size());
    if (grown < kLeakFloorOfPeak * peak_ || now - grown < kFilledUp * now) return std::nullopt;
    if (clear && grown < kFloorsAboveNoise * floor_noise(floors, warmup)) return std::nullopt;
    double highest = std::max(floors[warmup], highest_before_[first_in(length)]);
    if (before > 0) {
      highest = std::max(
          highest, *std::max_element(grid.floors.begin(), grid.floors.begin() + static_cast<std::ptrdiff_t>(before)));
    }
    if (now - highest < kAboveEarlier * grown) return std::nullopt;
    // It may have begun in the middle of that.
    for (const std::size_t part : {before, before / 2}) {
      if (part * 4 < cells) break;
      const double rate_before = lasting_growth(grid.floors, before - part, before) / static_cast<double>(part);
      if (rate_before > kFasterBefore * growth->bytes_per_step.value) return std::nullopt;
    }
    return found;
  }

  std::span<const UsageSpan> spans_;
  std::uint64_t now_;
  double all_ns_ = 0;
  double peak_ = 0;
  std::vector<std::uint64_t> samples_since_;
  std::vector<double> highest_before_;
};

constexpr std::size_t kFewestFloors = 10;
constexpr double kFloorsRise = 0.4;        // Kendall's tau
constexpr double kFloorsSurelyRise = 3;    // times its standard deviation without growth
constexpr double kLaterRise = 0.8;         // minimum of a later third's rise, relative to the first rise
constexpr double kFirstRise = 0.3;         // of the whole rise
constexpr double kLargestFloorJump = 0.4;  // of the growth

// At one rate: the last third is as much higher as the second one is, or more.
bool rises_evenly(std::span<const double> floors) {
  const std::size_t third = floors.size() / 3;
  const double first = mean_of(floors.first(third));
  const double second = mean_of(floors.subspan(third, floors.size() - 2 * third));
  const double last = mean_of(floors.last(third));
  return last > second && last - second >= kLaterRise * (second - first) &&
         second - first >= kFirstRise * (last - first);
}

// The largest jump between medians of three, so that a single outlier does not count.
double largest_jump(std::span<const double> floors) {
  const auto middle = [&](std::size_t at) {
    const double low = std::min(floors[at - 1], floors[at]);
    const double high = std::max(floors[at - 1], floors[at]);
    return std::clamp(floors[at + 1], low, high);
  };
  double jump = 0;
  for (std::size_t at = 2; at + 1 < floors.size(); ++at) jump = std::max(jump, middle(at) - middle(at - 1));
  return jump;
}

}  // namespace

std::optional<SampleGrowth> find_sample_growth(const std::vector<UsageSpan>& spans) {
  if (spans.empty()) return std::nullopt;
  // Memory from before the first step is loading: no step left it behind.
  const auto loading = [&](const UsageSpan& span) { return span.steps && span.steps == spans.front().steps; };
  const auto first = std::ranges::find_if_not(spans, loading);
  return Stretches(std::span(first == spans.end() ? spans.begin() : first, spans.end())).longest();
}

std::optional<Growth> find_floor_trend(std::span<const double> floors) {
  const std::size_t count = floors.size();
  if (count < kFewestFloors || std::ranges::is_sorted(floors) || !rises_evenly(floors)) return std::nullopt;
  if (kendall_tau(floors) < std::max(kFloorsRise, kFloorsSurelyRise * kendall_tau_deviation(count)))
    return std::nullopt;
  Growth growth;
  growth.bytes_per_step = theil_sen(floors);
  if (growth.bytes_per_step.low <= 0) return std::nullopt;
  if (largest_jump(floors) > kLargestFloorJump * growth.bytes_per_step.value * static_cast<double>(count - 1)) {
    return std::nullopt;
  }
  growth.analyzed_steps = static_cast<std::uint32_t>(count);
  double highest = floors.front();
  for (std::uint32_t cell = 1; cell < count; ++cell) {
    if (floors[cell] <= highest) continue;
    highest = floors[cell];
    if (growth.grown_steps++ == 0) growth.first_step = cell;
    growth.last_step = cell;
  }
  return growth;
}

}  // namespace tidemark
