// How peaks go on beyond the sizes that were measured: the sizes at which curves through them reach a limit.
#pragma once

#include <vector>

namespace tidemark {

/// Peaks are rounded up by as much: PyTorch's allocator reserves segments of 20 MiB, others round less.
inline constexpr double kPeakRounding = 20.0 * (1 << 20);
/// A peak may differ from its curve by such a share of the growth: algorithms and workspaces are chosen by size.
inline constexpr double kPeakNoise = 0.02;

struct BatchPeak {
  double size;
  double bytes;
};

/// A size at which the limit may be reached, and how well its curve explains the peaks.
struct BatchGuess {
  double size;
  double weight;
};

/// Whether the last peak differs from an earlier one by more than their rounding. Peaks are sorted by size.
[[nodiscard]] bool shows_growth(const std::vector<BatchPeak>& peaks);

/// By size. Each curve goes through the last peak and the nearest one well below it; each has a constant part. They are
/// powers of the size, and sums of the size and its square. A line weighs more than any other before there are more
/// peaks. `peaks` must show growth.
[[nodiscard]] std::vector<BatchGuess> guess_sizes(const std::vector<BatchPeak>& peaks, double limit_bytes);

/// The size that the limit is hardly reached beyond, with the peaks' noise counted; infinite where three peaks are not
/// known. `peaks` must show growth.
[[nodiscard]] double largest_guess(const std::vector<BatchPeak>& peaks, double limit_bytes);

}  // namespace tidemark
