// Whether a share rises or falls over a recording.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "analyze/leaks/trend.h"

namespace tidemark {

struct ShareTrend {
  /// Change from the first to the last moment, with its 95% interval: of a line that stays between 0 and 1, as shares
  /// do.
  Slope over_recording;
  std::uint64_t points = 0;  ///< that were looked at

  /// With 97.5% confidence each.
  [[nodiscard]] bool rises() const { return over_recording.low > 0; }
  [[nodiscard]] bool falls() const { return over_recording.high < 0; }
};

inline constexpr std::size_t kMinTrendPoints = 8;

/// The trend of values that are equally far apart in time, by theil_sen. Those at the beginning may be unknown; none
/// for fewer than kMinTrendPoints from there on, or when one of these is unknown.
[[nodiscard]] std::optional<ShareTrend> trend_of(std::span<const std::optional<double>> shares);

}  // namespace tidemark
