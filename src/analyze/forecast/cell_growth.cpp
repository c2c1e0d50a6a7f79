#include "analyze/forecast/cell_growth.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace tidemark {
namespace {

constexpr double kLargestJump = 0.2;  // of the growth: six equal ones are growth in steps, four are not
constexpr double kLastThird = 0.22;   // of the growth, that is at least in the last third of the cells
constexpr double kFirstThird = 0.1;
constexpr double kBend = 0.1;       // of the growth, that is missing where it began late
constexpr double kRise = 0.01;      // of the growth: less is none
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
constexpr double kSurelyRising = 4;  // times its deviation where nothing rises
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

std::optional<CellGrowth> find_cell_growth(std::span<const double> peaks, double before) {
  const std::size_t count = peaks.size();
  if (count < kFewestGrownCells) return std::nullopt;
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
