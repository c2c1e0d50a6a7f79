#include "analyze/forecast/period.h"

#include <vector>

#include "analyze/common/trend.h"

namespace tidemark {
namespace {

constexpr double kRepeats = 0.5;
constexpr double kForgotten = 0.1;
constexpr std::size_t kRepetitions = 3;
constexpr std::size_t kValuesForSlope = 32;

}  // namespace

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
