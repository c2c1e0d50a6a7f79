#include "analyze/forecast/change_points.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tidemark {
namespace {

constexpr double kParametersOfAPart = 3;       // level, slope, and where it begins
constexpr double kDeviationOfMedian = 1.4826;  // normal noise: deviation / median of absolute values
constexpr double kMinNoise = 1e-3;             // of the range: less would make every bend of a curve a change

// Sums of x, x^2, y, xy and y^2 up to each index, from which any line's squares follow.
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

}  // namespace tidemark
