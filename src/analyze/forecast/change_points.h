// The shape of a series: where its level or slope changes, and its period.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace tidemark {

/// The first index of each part after the first one. Parts are lines fitted by least squares; the division minimizes
/// the sum of squares plus a penalty for each part (Jackson et al. 2005, optimal partitioning; pruned as by Killick,
/// Fearnhead and Eckley 2012, PELT). The penalty is 3 parameters times ln(n) times the variance of the noise, which is
/// estimated from the median of second differences, so that changes do not count as noise. A part has at least
/// `shortest` values, at least 3. O(n^2) at most.
[[nodiscard]] std::vector<std::size_t> find_change_points(std::span<const double> values, std::size_t shortest);

/// The period of a series in values: the lag of the first peak above 0.5 in the autocorrelation of its residuals (from
/// the line of Theil and Sen), after it was below 0.1. nullopt if nothing repeats at least three times. O(n^2).
[[nodiscard]] std::optional<double> find_period(std::span<const double> values);

}  // namespace tidemark
