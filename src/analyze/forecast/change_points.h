// The shape of a series: where it changes its level or its slope, and after how many values it repeats.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace tidemark {

/// The first index of each part after the first one. Parts are lines fitted by least squares; of all divisions the one
/// with the least sum of squares plus a penalty for each part (Jackson et al. 2005, optimal partitioning; pruned as by
/// Killick, Fearnhead and Eckley 2012, PELT). The penalty is 3 parameters times ln(n) times the variance of the noise,
/// which is worked out from second differences, by their median, so that changes are not noise. A part has at least
/// `shortest` values, at least 3. O(n^2) at most.
[[nodiscard]] std::vector<std::size_t> find_change_points(std::span<const double> values, std::size_t shortest);

/// The number of values after which a series repeats: the lag of the first peak of its autocorrelation (of what is left
/// of the line of Theil and Sen) above 0.5, after it was below 0.1. None where nothing repeats at least three times.
/// O(n^2).
[[nodiscard]] std::optional<double> find_period(std::span<const double> values);

}  // namespace tidemark
