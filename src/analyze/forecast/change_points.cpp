#include "analyze/forecast/change_points.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "analyze/common/trend.h"

namespace tidemark {

namespace {

constexpr double kParametersOfAPart = 3;       // level, slope and start
constexpr double kDeviationOfMedian = 1.4826;  // normal noise: deviation / median of absolute values
constexpr double kMinNoise = 1e-3;             // of the range: less would make every bend of a curve a change

// Sums of x, x^2, y, xy and y^2 up to each index, from which the squares of any line follow.
class LineCosts {
 public:
  explicit LineCosts(std::span<const double> values) : sums_(values.size() + 1) {
    for (std::size_t index = 0; index < values.size(); ++index) {
      const auto x = static_cast<double>(index);
      const double y = values[index];
      const Sums& s = sums_[index];
      sums_[index + 1] = {s.x + x, s.xx + x * x, s.y + y, s.xy + x * y, s.yy + y * y};
    }
  }

  // The sum of squares that the best line leaves of the values in [from, to).
  [[nodiscard]] double operator()(std::size_t from, std::size_t to) const {
    const Sums& a = sums_[from];
    const Sums& b = sums_[to];
    const auto n = static_cast<double>(to - from);
    const double x = b.x - a.x;
    const double y = b.y - a.y;
    const double xx = b.xx - a.xx - x * x / n;
    const double xy = b.xy - a.xy - x * y / n;
    const double yy = b.yy - a.yy - y * y / n;
    return std::max(0.0, xx > 0 ? yy - xy * xy / xx : yy);
  }

 private:
  struct Sums {
    double x = 0, xx = 0, y = 0, xy = 0, yy = 0;
  };
  std::vector<Sums> sums_;
};

double noise_of(std::span<const double> values) {
  std::vector<double> differences;
  for (std::size_t index = 2; index < values.size(); ++index) {
    differences.push_back(std::abs(values[index] - 2 * values[index - 1] + values[index - 2]));
  }
  const auto middle = differences.begin() + static_cast<std::ptrdiff_t>(differences.size() / 2);
  std::nth_element(differences.begin(), middle, differences.end());
  return *middle * kDeviationOfMedian / std::sqrt(6.0);  // 1 + 4 + 1 times the variance of a value
}

constexpr double kRepeats = 0.5;
constexpr double kForgotten = 0.1;
constexpr std::size_t kRepetitions = 3;
constexpr std::size_t kValuesForSlope = 32;

}  // namespace

std::vector<std::size_t> find_change_points(std::span<const double> values, std::size_t shortest) {
  shortest = std::max<std::size_t>(3, shortest);
  const std::size_t count = values.size();
  if (count < 2 * shortest) return {};
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double range = *most - *least;
  if (!(range > 0)) return {};
  // Large sizes that differ by little would lose their digits in sums of squares.
  std::vector<double> scaled(values.begin(), values.end());
  for (double& value : scaled) value = (value - *least) / range;
  const double noise = std::max(kMinNoise, noise_of(scaled));
  const double penalty = kParametersOfAPart * std::log(static_cast<double>(count)) * noise * noise;
  const LineCosts cost(scaled);

  std::vector<double> best(count + 1, std::numeric_limits<double>::infinity());  // of the values before an index
  std::vector<std::size_t> begin_of_last(count + 1);
  best[0] = -penalty;
  std::vector<std::size_t> begins = {0};
  for (std::size_t end = shortest; end <= count; ++end) {
    for (const std::size_t begin : begins) {
      if (end - begin < shortest) continue;
      const double total = best[begin] + cost(begin, end) + penalty;
      if (total < best[end]) {
        best[end] = total;
        begin_of_last[end] = begin;
      }
    }
    std::erase_if(begins, [&](std::size_t begin) {
      return end - begin >= shortest && best[begin] + cost(begin, end) > best[end];
    });
    if (end + shortest <= count) begins.push_back(end);
  }
  std::vector<std::size_t> changes;
  for (std::size_t end = begin_of_last[count]; end > 0; end = begin_of_last[end]) changes.push_back(end);
  std::reverse(changes.begin(), changes.end());
  return changes;
}

std::optional<double> find_period(std::span<const double> values) {
  const std::size_t count = values.size();
  if (count < 4 * kRepetitions) return std::nullopt;
  const std::size_t stride = 1 + count / kValuesForSlope;
  std::vector<double> thinned;
  for (std::size_t index = 0; index < count; index += stride) thinned.push_back(values[index]);
  const double slope = theil_sen(thinned).value / static_cast<double>(stride);
  std::vector<double> rest(count);
  double mean = 0;
  for (std::size_t index = 0; index < count; ++index) {
    rest[index] = values[index] - slope * static_cast<double>(index);
    mean += rest[index] / static_cast<double>(count);
  }
  double variance = 0;
  for (double& value : rest) {
    value -= mean;
    variance += value * value;
  }
  if (!(variance > 0)) return std::nullopt;
  const std::size_t longest = count / kRepetitions;
  std::vector<double> correlation(longest + 2);
  for (std::size_t lag = 1; lag < correlation.size(); ++lag) {
    double sum = 0;
    for (std::size_t index = lag; index < count; ++index) sum += rest[index] * rest[index - lag];
    correlation[lag] = sum / variance * static_cast<double>(count) / static_cast<double>(count - lag);
  }
  bool forgotten = false;
  for (std::size_t lag = 1; lag <= longest; ++lag) {
    forgotten = forgotten || correlation[lag] < kForgotten;
    if (!forgotten || lag < 2 || correlation[lag] < kRepeats) continue;
    const double left = correlation[lag - 1];
    const double right = correlation[lag + 1];
    if (correlation[lag] < left || correlation[lag] < right) continue;
    // The top of the parabola through the three.
    const double bend = left - 2 * correlation[lag] + right;
    return static_cast<double>(lag) + (bend < 0 ? (left - right) / (2 * bend) : 0);
  }
  return std::nullopt;
}

}  // namespace tidemark
