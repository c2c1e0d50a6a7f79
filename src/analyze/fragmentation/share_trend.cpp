#include "analyze/fragmentation/share_trend.h"

#include <algorithm>
#include <vector>

namespace tidemark {

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
