#include "analyze/forecast/peak_growth.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tidemark {
namespace {

constexpr std::size_t kMostCells = 32;
constexpr std::size_t kFewestCells = 8;
constexpr std::uint64_t kFewestForGrowth = 12;
constexpr double kLargestJump = 0.45;  // of the growth: three equal ones are growth in steps, two are not
constexpr double kLastThird = 0.15;    // of the growth, that is at least in the last third of the cells
constexpr double kFirstThird = 0.03;
constexpr double kNotYetGrown = 0.02;  // of the growth: before, it had not begun
constexpr double kAboveNoise = 3;
constexpr double kAboveBefore = 0.5;
constexpr double kRising = 0.5;      // Kendall's tau
constexpr double kSurelyRising = 4;  // times its deviation where nothing rises
constexpr double kAlwaysRising = 0.9;
constexpr double kShorter = 0.75;  // each stretch to the one before
constexpr double kSlowest = 0.6;   // CellGrowth::later_share of growth at one rate
constexpr double kFastest = 1.8;
constexpr double kAtLimit = 0.95;

// The deviation of Kendall's tau-a of so many values without order (Kendall 1938).
double tau_deviation(std::size_t count) {
  const auto n = static_cast<double>(count);
  return std::sqrt(2 * (2 * n + 5) / (9 * n * (n - 1)));
}

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::optional<CellGrowth> find_cell_growth(std::span<const double> peaks, double before) {
  const std::size_t count = peaks.size();
  if (count < kFewestCells) return std::nullopt;
  std::vector<double> highest(count);  // until each cell
  for (std::size_t cell = 0; cell < count; ++cell)
    highest[cell] = std::max(peaks[cell], cell > 0 ? highest[cell - 1] : 0);
  const double start = highest[count / 8];
  CellGrowth growth;
  growth.grown = highest.back() - start;
  if (growth.grown <= 0 || highest.back() - std::max(start, before) < kAboveBefore * growth.grown) return std::nullopt;
  const auto share = [&](std::size_t from, std::size_t to) { return (highest[to] - highest[from]) / growth.grown; };
  if (share(count - 1 - count / 3, count - 1) < kLastThird || share(count / 8, count / 3) < kFirstThird) {
    return std::nullopt;
  }
  std::size_t pause = 0;
  std::size_t latest = 0;
  for (std::size_t cell = 1; cell < count; ++cell) {
    if (highest[cell] - highest[cell - 1] > kLargestJump * growth.grown && cell > count / 8) return std::nullopt;
    if (highest[cell] <= highest[cell - 1]) continue;
    pause = std::max(pause, cell - latest);
    latest = cell;
    ++growth.rises;
  }
  if (count - 1 - latest > 2 * pause) return std::nullopt;
  if (kendall_tau(peaks) < std::max(kRising, std::min(kAlwaysRising, kSurelyRising * tau_deviation(count)))) {
    return std::nullopt;
  }
  growth.per_cell = theil_sen(peaks, kNormal90);
  if (growth.per_cell.low <= 0) return std::nullopt;

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
  std::size_t began = 0;
  while (highest[began + 1] <= start + kNotYetGrown * growth.grown) ++began;
  growth.began = static_cast<double>(began) / static_cast<double>(count);
  const double middle = highest[(began + count) / 2];
  const double first_half = middle - highest[began];
  growth.later_share =
      first_half > 0 ? (highest.back() - middle) / first_half : std::numeric_limits<double>::infinity();
  return growth;
}

std::optional<PeakGrowth> find_peak_growth(const std::vector<UsageSpan>& spans,
                                           std::optional<std::uint64_t> limit_bytes) {
  if (spans.empty()) return std::nullopt;
  const std::uint64_t now = spans.back().to_ns;
  std::vector<std::uint64_t> samples_since(spans.size() + 1);  // in the span and those after it
  for (std::size_t index = spans.size(); index-- > 0;)
    samples_since[index] = samples_since[index + 1] + spans[index].samples;
  std::vector<double> peak_before(spans.size() + 1);  // of all spans before it
  for (std::size_t index = 0; index < spans.size(); ++index) {
    const auto peak = static_cast<double>(spans[index].peak_bytes);
    const bool at_limit = limit_bytes && peak >= kAtLimit * static_cast<double>(*limit_bytes);
    peak_before[index + 1] = at_limit ? peak_before[index] : std::max(peak_before[index], peak);
  }
  std::optional<PeakGrowth> found;
  bool at_one_rate = false;
  double age = 0;
  for (double length = static_cast<double>(now - spans.front().from_ns); length > 0; length *= kShorter) {
    const std::uint64_t from = now - static_cast<std::uint64_t>(length);
    const auto first = static_cast<std::size_t>(
        std::lower_bound(spans.begin(), spans.end(), from,
                         [](const UsageSpan& span, std::uint64_t time) { return span.from_ns < time; }) -
        spans.begin());
    const std::uint64_t samples = samples_since[first];
    if (samples < kFewestForGrowth || at_one_rate) break;
    const auto cells = static_cast<std::size_t>(std::clamp<std::uint64_t>(samples / 2, kFewestCells, kMostCells));
    const UsageGrid grid = cut_into_cells(spans, from, cells);
    const auto growth = find_cell_growth(grid.peaks, peak_before[first]);
    if (!growth) continue;
    if (growth->later_share >= kSlowest) age = std::max(age, length / kNanosecondsPerSecond * (1 - growth->began));
    at_one_rate = growth->later_share >= kSlowest && growth->later_share <= kFastest;
    if (found && !at_one_rate) continue;
    found = PeakGrowth{};
    found->cells = *growth;
    found->cell_seconds = grid.cell_seconds;
    found->span_seconds = length / kNanosecondsPerSecond;
    found->samples = samples;
    if (spans[first].steps && spans.back().steps) {
      found->steps = static_cast<double>(*spans.back().steps) - static_cast<double>(*spans[first].steps);
    }
  }
  if (!found) return std::nullopt;
  const auto doubled = std::find_if(spans.begin(), spans.end(), [&](const UsageSpan& span) {
    return 2 * static_cast<double>(span.peak_bytes) >= found->cells.peak_now;
  });
  found->age_seconds = std::min(std::max(age, found->span_seconds * (1 - found->cells.began)),
                                static_cast<double>(now - doubled->from_ns) / kNanosecondsPerSecond);
  const double share = found->cells.later_share;
  if (share < 1) found->saturates_after = found->cells.grown * share / (1 + share) * share / (1 - share);
  return found;
}

}  // namespace tidemark
