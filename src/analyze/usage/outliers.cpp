#include "analyze/usage/outliers.h"

#include <algorithm>

namespace tidemark {
namespace {

constexpr double kMinRankShare = 0.05;   // of the median
constexpr double kDeviations = 3;        // scaled MADs
constexpr double kNormalScale = 1.4826;  // of the MAD, to estimate a standard deviation

}  // namespace

std::uint64_t median_of(std::vector<std::uint64_t> values) {
  std::sort(values.begin(), values.end());
  const std::uint64_t upper = values[values.size() / 2];
  if (values.size() % 2 == 1) return upper;
  const std::uint64_t lower = values[values.size() / 2 - 1];
  return lower + (upper - lower) / 2;
}

OutlierLimit outlier_limit(const std::vector<std::uint64_t>& values) {
  const std::uint64_t median = median_of(values);
  std::vector<std::uint64_t> gaps = values;
  for (std::uint64_t& value : gaps) value = gap_between(value, median);
  const double deviation = kDeviations * kNormalScale * static_cast<double>(median_of(gaps));
  const double least = kMinRankShare * static_cast<double>(median);
  constexpr double kMost = 0x1p63;  // the values may come from other machines
  return {values.size(), median, static_cast<std::uint64_t>(std::min(std::max(deviation, least), kMost))};
}

}  // namespace tidemark
