// Whether a series of values rises or falls, and how fast, without assuming anything about the noise in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tidemark {

// Quantiles of the normal distribution: the half of two-sided intervals of 90% and 95%.
inline constexpr double kNormal90 = 1.644853627;
inline constexpr double kNormal95 = 1.959963985;

/// The slope per element of a series, with its confidence interval.
struct Slope {
  double value = 0;
  double low = 0;
  double high = 0;

  /// Its interval is on one side of zero.
  [[nodiscard]] bool rises() const { return low > 0; }
  [[nodiscard]] bool falls() const { return high < 0; }
};

/// At least one value.
[[nodiscard]] double mean_of(std::span<const double> values);

/// Kendall's tau-a of the values with their order: (rising pairs - falling pairs) / all pairs, -1 to 1; equal values
/// are neither. 0 for fewer than two values. (Kendall 1938; the statistic of the Mann-Kendall trend test.) O(n^2).
[[nodiscard]] double kendall_tau(std::span<const double> values);

/// The standard deviation of kendall_tau() for `count` values in random order (Kendall 1938); at least two.
[[nodiscard]] double kendall_tau_deviation(std::size_t count);

/// Theil's and Sen's estimate: the median of the slopes of all pairs; the interval by Sen (1968), from the normal
/// approximation of Kendall's statistic. It does not change when up to 29% of the values are wrong. O(n^2): thin
/// out long series. 0 for fewer than two values.
[[nodiscard]] Slope theil_sen(std::span<const double> values, double normal_quantile = kNormal95);

/// Index where a rise began: the value furthest below the line from the first to the last value, if that distance is at
/// least `least` of the rise; else 0.
[[nodiscard]] std::size_t find_bend(std::span<const double> values, double least);

/// The mean with Student's 95% interval, for values that do not depend on each other. The interval is the mean itself
/// for equal values, and unbounded for a single one.
[[nodiscard]] Slope mean_with_interval(std::span<const double> values);

struct ShareTrend {
  /// Change from the first to the last of these moments, with its 95% interval: of a line that stays between 0 and 1,
  /// as shares do.
  Slope over_recording;
  std::uint64_t points = 0;    ///< number of values used
  std::uint64_t begin_ns = 0;  ///< start of the values' time range
  std::uint64_t end_ns = 0;

  static constexpr double kMin = 0.01;  ///< less is no change
  /// With 97.5% confidence each.
  [[nodiscard]] bool rises() const { return over_recording.rises() && over_recording.value >= kMin; }
  [[nodiscard]] bool falls() const { return over_recording.falls() && over_recording.value <= -kMin; }
};

inline constexpr std::size_t kMinTrendPoints = 8;

/// The trend of values at equal distances in time, by theil_sen. Leading values may be unknown; nullopt for fewer than
/// kMinTrendPoints after them, or if a later one is unknown. The caller keeps their times.
[[nodiscard]] std::optional<ShareTrend> trend_of(std::span<const std::optional<double>> shares);

}  // namespace tidemark
