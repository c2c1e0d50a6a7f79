#include "analyze/forecast/peak_growth.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace tidemark {

namespace {

constexpr std::size_t kMaxCells = 32;
constexpr std::uint64_t kFewestForGrowth = 12;
constexpr double kShorter = 0.75;  // each stretch to the one before
constexpr double kSlowest = 0.7;   // CellGrowth::later_share of growth at one rate
constexpr double kFastest = 1.8;
constexpr double kAtLimit = 0.95;
constexpr double kShortest = 0.25;  // stretches, to the longest at one rate
constexpr double kLonger = 2;       // factor up to which longer stretches can prove that growth ends
constexpr double kSaturationMargin = 0.5;
constexpr double kStepsKnown = 0.5;  // of a stretch
constexpr double kLittleRoom = 0.9;  // of the limit: minimum usage with little room left

bool is_at_one_rate(const CellGrowth& growth) {
  return growth.later_share >= kSlowest && growth.later_share <= kFastest;
}

// The rest of a geometric series, if the second half of the growth is `later_share` times the first.
std::optional<double> rest_of(const CellGrowth& growth) {
  const double share = growth.later_share;
  if (share >= 1) return std::nullopt;
  return growth.grown * share / (1 + share) * share / (1 - share);
}

// For a stretch that begins at `from_ns`, with the span `first`. If steps are known only for its later part, for
// example since the recording was found, the same rate is assumed before; less than half of the stretch is not
// sufficient.
void count_steps(const std::vector<UsageSpan>& spans, std::size_t first, std::uint64_t from_ns, PeakGrowth& stretch) {
  if (!spans.back().steps) return;
  while (!spans[first].steps) ++first;
  const auto length = static_cast<double>(spans.back().to_ns - from_ns);
  const auto share_since = [&](std::size_t index) {
    return static_cast<double>(spans.back().to_ns - spans[index].to_ns) / length;
  };
  const double known = share_since(first);
  if (known < kStepsKnown) return;
  stretch.steps = static_cast<double>(*spans.back().steps - *spans[first].steps) / known;
  std::size_t before_second = first;
  while (before_second + 1 < spans.size() && spans[before_second + 1].steps == spans[first].steps) ++before_second;
  stretch.steps_all_along = share_since(before_second) >= kStepsKnown;
}

// All stretches until now in which peaks grow, longest first.
std::vector<PeakGrowth> growing_stretches(const std::vector<UsageSpan>& spans,
                                          std::optional<std::uint64_t> limit_bytes) {
  const std::uint64_t now = spans.back().to_ns;
  std::vector<std::uint64_t> samples_since(spans.size() + 1);  // number of samples in the span and after it
  std::vector<std::uint64_t> recorded_since(spans.size() + 1);
  for (std::size_t index = spans.size(); index-- > 0;) {
    samples_since[index] = samples_since[index + 1] + spans[index].samples;
    recorded_since[index] = recorded_since[index + 1] + spans[index].recorded_peaks;
  }
  std::vector<double> peak_before(spans.size() + 1);  // of all spans before it
  for (std::size_t index = 0; index < spans.size(); ++index) {
    const auto peak = static_cast<double>(spans[index].peak_bytes);
    const bool at_limit = limit_bytes && peak >= kAtLimit * static_cast<double>(*limit_bytes);
    peak_before[index + 1] = at_limit ? peak_before[index] : std::max(peak_before[index], peak);
  }
  std::vector<PeakGrowth> found;
  double shortest = 0;
  // Samples from before a recorder reported peaks between samples are lower, and cannot be compared.
  const auto recorded = std::ranges::find_if(spans, [](const UsageSpan& span) { return span.recorded_peaks > 0; });
  const std::uint64_t begin = (recorded == spans.end() ? spans.front() : *recorded).from_ns;
  for (auto length = static_cast<double>(now - begin); length > shortest; length *= kShorter) {
    const std::uint64_t from = now - static_cast<std::uint64_t>(length);
    const auto place = std::ranges::lower_bound(spans, from, {}, &UsageSpan::from_ns) - spans.begin();
    const auto first = static_cast<std::size_t>(place);
    if (samples_since[first] < kFewestForGrowth) break;
    // If a recorder reports peaks, cells without one are ignored.
    const bool is_recorded = recorded_since[first] >= kFewestForGrowth;
    const std::uint64_t known = is_recorded ? recorded_since[first] : samples_since[first];
    const auto cells = static_cast<std::size_t>(std::clamp<std::uint64_t>(known / 2, kFewestGrownCells, kMaxCells));
    const UsageGrid grid = cut_into_cells(spans, from, cells);
    const auto growth = find_cell_growth(grid.peaks, peak_before[first]);
    if (!growth) continue;
    if (shortest == 0 && is_at_one_rate(*growth)) shortest = length * kShortest;
    PeakGrowth& stretch = found.emplace_back();
    stretch.cells = *growth;
    stretch.cell_seconds = grid.cell_seconds;
    stretch.span_seconds = length / kNanosecondsPerSecond;
    stretch.samples = samples_since[first];
    stretch.saturates_after = rest_of(*growth);
    count_steps(spans, first, from, stretch);
  }
  return found;
}

// In a part that is short enough, slowing growth looks steady: stretches up to twice as long are also considered.
std::optional<double> saturation_of(const std::vector<PeakGrowth>& stretches, const PeakGrowth& chosen) {
  std::optional<double> least = chosen.saturates_after;
  for (const PeakGrowth& longer : stretches) {
    if (longer.span_seconds < chosen.span_seconds || longer.span_seconds > kLonger * chosen.span_seconds) continue;
    if (longer.saturates_after) least = std::min(least.value_or(*longer.saturates_after), *longer.saturates_after);
  }
  return least;
}

constexpr double kLargestJump = 0.2;  // of the growth: six equal ones are growth in steps, four are not
constexpr double kLastThird = 0.22;   // of the growth: minimum in the last third of the cells
constexpr double kFirstThird = 0.1;
constexpr double kBend = 0.1;       // of the growth: missing part if it began late
constexpr double kRise = 0.01;      // of the growth: smaller rises are ignored
constexpr double kLongPause = 1.5;  // times the longest one before: growth that has stopped
// Growth that has all but stopped, though now and then a noisy peak is a little higher than all before: in the last
// quarter of the cells, or the last two of the longest pauses, or half of these, the slope is less than this share.
constexpr double kStillGrowing = 0.4;
constexpr std::size_t kLatestPauses = 2;
constexpr std::size_t kLatestPart = 4;
constexpr double kJump = 2;             // slopes
constexpr double kUnlikeBefore = 1.25;  // times the largest rise before
constexpr std::size_t kFewestSinceJump = 7;
constexpr double kAboveNoise = 3;
constexpr double kAboveBefore = 0.5;
constexpr double kRising = 0.5;      // Kendall's tau
constexpr double kSurelyRising = 4;  // times its standard deviation without growth
constexpr double kAlwaysRising = 0.9;

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// CellGrowth::jumped. `highest`: the highest peak until each cell.
bool has_jumped(std::span<const double> peaks, std::span<const double> highest, double slope) {
  const std::size_t count = peaks.size();
  const auto rise_to = [&](std::size_t cell) { return highest[cell] - highest[cell - 1]; };
  const std::size_t latest = count - count / kLatestPart;
  double earlier = 0;
  for (std::size_t cell = count / 8 + 1; cell < latest; ++cell) earlier = std::max(earlier, rise_to(cell));
  std::size_t jump = latest;
  for (std::size_t cell = latest + 1; cell < count; ++cell) {
    if (rise_to(cell) > rise_to(jump)) jump = cell;
  }
  if (rise_to(jump) <= std::max(kJump * slope, kUnlikeBefore * earlier)) return false;
  return count - jump < kFewestSinceJump || theil_sen(peaks.subspan(jump)).value < kStillGrowing * slope;
}

}  // namespace

bool PeakGrowth::ends_before(double bytes) const {
  return saturates_after && *saturates_after * kSaturationMargin < bytes;
}

std::optional<PeakGrowth> find_peak_growth(const std::vector<UsageSpan>& spans,
                                           std::optional<std::uint64_t> limit_bytes) {
  if (spans.empty()) return std::nullopt;
  const std::vector<PeakGrowth> stretches = growing_stretches(spans, limit_bytes);
  if (stretches.empty()) return std::nullopt;
  std::optional<PeakGrowth> found;
  double age = 0;
  for (const PeakGrowth& stretch : stretches) {
    if (stretch.cells.later_share >= kSlowest) {
      age = std::max(age, stretch.span_seconds * (1 - stretch.cells.began));
    }
    if (!is_at_one_rate(stretch.cells)) continue;
    PeakGrowth candidate = stretch;
    candidate.saturates_after = saturation_of(stretches, stretch);
    const bool goes_on = !limit_bytes || !candidate.ends_before(candidate.left_to(*limit_bytes));
    if (!found || goes_on) found = candidate;
    if (goes_on) break;
  }
  if (!found) found = stretches.front();
  const auto doubled = std::ranges::find_if(
      spans, [&](const UsageSpan& span) { return 2 * static_cast<double>(span.peak_bytes) >= found->cells.peak_now; });
  found->age_seconds = std::max(age, found->span_seconds * (1 - found->cells.began));
  found->evidence_seconds = found->age_seconds;
  if (!limit_bytes || found->cells.peak_now < kLittleRoom * static_cast<double>(*limit_bytes) || found->cells.jumped) {
    const double since = static_cast<double>(spans.back().to_ns - doubled->from_ns) / kNanosecondsPerSecond;
    found->evidence_seconds = std::min(found->age_seconds, since);
  }
  return found;
}

std::optional<CellGrowth> find_cell_growth(std::span<const double> peaks, double before) {
  const std::size_t count = peaks.size();
  if (count < kFewestGrownCells) return std::nullopt;
  std::vector<double> highest(count);  // until each cell
  for (std::size_t cell = 0; cell < count; ++cell)
    highest[cell] = std::max(peaks[cell], cell > 0 ? highest[cell - 1] : 0);
  const double start = highest[count / 8];
  // The first cells may lie between two peaks and contain none: they take the previous peak.
  for (std::size_t cell = 0; cell < count / 8; ++cell) highest[cell] = std::max(highest[cell], std::min(before, start));
  CellGrowth growth;
  growth.grown = highest.back() - start;
  if (growth.grown <= 0 || highest.back() - std::max(start, before) < kAboveBefore * growth.grown) return std::nullopt;
  const auto share = [&](std::size_t from, std::size_t to) { return (highest[to] - highest[from]) / growth.grown; };
  if (share(count - 1 - count / 3, count - 1) < kLastThird || share(count / 8, count / 3) < kFirstThird) {
    return std::nullopt;
  }
  double pause = 0;
  double risen = highest.front();
  std::size_t latest = 0;
  for (std::size_t cell = 1; cell < count; ++cell) {
    if (highest[cell] - highest[cell - 1] > kLargestJump * growth.grown && cell > count / 8) return std::nullopt;
    if (highest[cell] <= risen + kRise * growth.grown) continue;
    risen = highest[cell];
    pause = std::max(pause, static_cast<double>(cell - latest));
    latest = cell;
    ++growth.rises;
  }
  if (static_cast<double>(count - 1 - latest) > kLongPause * pause) return std::nullopt;
  if (kendall_tau(peaks) < std::max(kRising, std::min(kAlwaysRising, kSurelyRising * kendall_tau_deviation(count)))) {
    return std::nullopt;
  }
  growth.per_cell = theil_sen(peaks, kNormal90);
  if (growth.per_cell.low <= 0) return std::nullopt;
  const std::size_t latest_cells = std::max(kLatestPauses * static_cast<std::size_t>(pause), count / kLatestPart);
  for (std::size_t part = std::max<std::size_t>(latest_cells / 2, 4); part <= latest_cells && part < count; ++part) {
    if (theil_sen(peaks.last(part)).value < kStillGrowing * growth.per_cell.value) return std::nullopt;
  }

  growth.jumped = has_jumped(peaks, highest, growth.per_cell.value);

  std::vector<double> residuals(count);
  for (std::size_t cell = 0; cell < count; ++cell) {
    residuals[cell] = peaks[cell] - growth.per_cell.value * static_cast<double>(cell);
  }
  const double highest_line = *std::max_element(residuals.begin(), residuals.end());
  const double line = median_of(residuals);
  for (double& residual : residuals) residual = std::abs(residual - line);
  growth.noise = median_of(residuals);
  if (growth.grown < kAboveNoise * growth.noise) return std::nullopt;
  growth.peak_now = std::max(
      peaks.back(), std::min(highest.back(), highest_line + growth.per_cell.value * static_cast<double>(count - 1)));
  const std::size_t began = find_bend(highest, kBend);
  if (count - began < kFewestGrownCells) return std::nullopt;
  growth.began = static_cast<double>(began) / static_cast<double>(count);
  const double middle = highest[(began + count) / 2];
  const double first_half = middle - highest[began];
  growth.later_share =
      first_half > 0 ? (highest.back() - middle) / first_half : std::numeric_limits<double>::infinity();
  return growth;
}

}  // namespace tidemark
