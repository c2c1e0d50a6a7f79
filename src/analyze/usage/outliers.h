// Which of several comparable processes stand out by their memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tidemark {

/// The median of an even number of values is the mean of the middle two. `values` is not empty.
[[nodiscard]] std::uint64_t median_of(std::vector<std::uint64_t> values);

/// The distance between two values.
[[nodiscard]] inline std::uint64_t gap_between(std::uint64_t left, std::uint64_t right) {
  return left < right ? right - left : left - right;
}

/// An outlier differs from the median by more than `limit`: by more than 5% of the median, and by more than three
/// scaled median absolute deviations (MAD * 1.4826), the conservative choice of Leys et al. 2013,
/// doi:10.1016/j.jesp.2013.03.013.
struct OutlierLimit {
  std::size_t count = 0;
  std::uint64_t median = 0;
  std::uint64_t limit = 0;

  /// Fewer than three values have no outlier.
  [[nodiscard]] bool is_outlier(std::uint64_t value) const { return count >= 3 && gap_between(value, median) > limit; }
};
/// `values` is not empty.
[[nodiscard]] OutlierLimit outlier_limit(const std::vector<std::uint64_t>& values);

}  // namespace tidemark
