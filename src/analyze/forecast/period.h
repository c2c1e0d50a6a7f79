// What repeats in a series.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace tidemark {

/// The number of values after which a series repeats: the lag of the first peak of its autocorrelation (of what is left
/// of the line of Theil and Sen) above 0.5, after it was below 0.1. None where nothing repeats at least three times.
/// O(n^2).
[[nodiscard]] std::optional<double> find_period(std::span<const double> values);

}  // namespace tidemark
