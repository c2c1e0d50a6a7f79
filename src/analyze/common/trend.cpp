#include "analyze/common/trend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace tidemark {
namespace {

// The 97.5% quantile of Student's distribution: exact for 1 and 2 degrees of freedom, beyond by Cornish and Fisher's
// expansion (Abramowitz and Stegun 26.7.5; at most 0.6% off, at 3).
double student95(double degrees) {
  if (degrees < 1.5) return 12.7062;
  if (degrees < 2.5) return 4.30265;
  return kNormal95 + 2.372271 / degrees + 2.822500 / (degrees * degrees) + 2.555852 / std::pow(degrees, 3) +
         1.589536 / std::pow(degrees, 4);
}

}  // namespace

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double kendall_tau(std::span<const double> values) {
  if (values.size() < 2) return 0;
  double sum = 0;
  for (std::size_t left = 0; left < values.size(); ++left) {
    for (std::size_t right = left + 1; right < values.size(); ++right) {
      sum += values[right] > values[left] ? 1 : 0;
      sum -= values[right] < values[left] ? 1 : 0;
    }
  }
  const auto count = static_cast<double>(values.size());
  return sum / (count * (count - 1) / 2);
}

double kendall_tau_deviation(std::size_t count) {
  const auto n = static_cast<double>(count);
  return std::sqrt(2 * (2 * n + 5) / (9 * n * (n - 1)));
}

Slope theil_sen(std::span<const double> values, double normal_quantile) {
  if (values.size() < 2) return {};
  std::vector<double> slopes;
  slopes.reserve(values.size() * (values.size() - 1) / 2);
  for (std::size_t left = 0; left < values.size(); ++left) {
    for (std::size_t right = left + 1; right < values.size(); ++right) {
      slopes.push_back((values[right] - values[left]) / static_cast<double>(right - left));
    }
  }
  const auto count = static_cast<double>(values.size());
  const auto pairs = static_cast<double>(slopes.size());
  const double half_width = normal_quantile * std::sqrt(count * (count - 1) * (2 * count + 5) / 18);
  const auto at = [&](double rank) {  // counted from 1
    const auto place = slopes.begin() + static_cast<std::ptrdiff_t>(std::clamp(rank, 1.0, pairs)) - 1;
    std::nth_element(slopes.begin(), place, slopes.end());
    return *place;
  };
  const double middle = std::floor(pairs / 2);
  const double median = slopes.size() % 2 == 1 ? at(middle + 1) : (at(middle) + at(middle + 1)) / 2;
  return {median, at(std::round((pairs - half_width) / 2)), at(std::round((pairs + half_width) / 2) + 1)};
}

std::size_t find_bend(std::span<const double> values, double least) {
  if (values.size() < 3) return 0;
  const double rise = values.back() - values.front();
  std::size_t bend = 0;
  double furthest = least * rise;
  for (std::size_t index = 1; index + 1 < values.size(); ++index) {
    const double line = values.front() + rise * static_cast<double>(index) / static_cast<double>(values.size() - 1);
    if (line - values[index] < furthest) continue;
    furthest = line - values[index];
    bend = index;
  }
  return bend;
}

Slope mean_with_interval(std::span<const double> values) {
  if (values.empty()) return {};
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  const double mean = sum / count;
  constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  if (values.size() == 1) return {mean, -kUnbounded, kUnbounded};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double half_width = student95(count - 1) * std::sqrt(squares / (count - 1) / count);
  return {mean, mean - half_width, mean + half_width};
}

std::optional<ShareTrend> trend_of(std::span<const std::optional<double>> shares) {
  std::vector<double> known;
  known.reserve(shares.size());
  for (const std::optional<double>& share : shares) {
    if (!share && !known.empty()) return std::nullopt;
    if (share) known.push_back(*share);
  }
  if (known.size() < kMinTrendPoints) return std::nullopt;
  const Slope slope = theil_sen(known);
  const auto spans = static_cast<double>(known.size() - 1);
  // A steep slope of neighbours, such as a bound of the interval, would take the share beyond 0 and 1 over all of them.
  const auto change = [&](double by) { return std::clamp(by * spans, -1.0, 1.0); };
  return ShareTrend{{change(slope.value), change(slope.low), change(slope.high)}, known.size()};
}

}  // namespace tidemark
