// Finds the largest batch size that fits a memory, in few probes: the next size follows from the peaks and the failures
// so far. The caller runs the steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "inprocess/cuda/cuda_driver.h"

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

/// Guesses in order of size. Each curve goes through the last peak and the nearest one well below it; each has a
/// constant part. They are powers of the size, and sums of the size and its square. Until there are more peaks, a line
/// has the highest weight. `peaks` must show growth.
[[nodiscard]] std::vector<BatchGuess> guess_sizes(const std::vector<BatchPeak>& peaks, double limit_bytes);

/// An upper bound of the size at which the limit is reached, including the peaks' noise; infinite with fewer than three
/// peaks. `peaks` must show growth.
[[nodiscard]] double largest_guess(const std::vector<BatchPeak>& peaks, double limit_bytes);

struct BatchSearchOptions {
  std::size_t start = 1;                     ///< the first size tried, rounded up to a multiple
  std::optional<std::size_t> maximum;        ///< the largest useful size, such as the size of the data set
  std::size_t multiple_of = 1;               ///< sizes are multiples of this
  std::optional<std::uint64_t> limit_bytes;  ///< largest peak there is memory for
  double margin = 0.05;                      ///< how far below the largest size that fits the result may be: a share
  std::size_t probes = 8;                    ///< maximum number of probes
};

/// Why a search has ended, or that it has not.
enum class BatchSearchEnd : std::uint8_t { searching, found, maximum_fits, nothing_fits, probes_used };

struct BatchSearchResult {
  BatchSearchEnd end = BatchSearchEnd::searching;
  std::optional<std::size_t> batch_size;    ///< the largest size that was tried and fitted
  std::optional<std::size_t> does_not_fit;  ///< the smallest size that was tried and did not
  std::size_t probes = 0;                   ///< number of sizes tried
  std::optional<double> slope_bytes;        ///< of peaks over sizes, between the smallest and the largest that fitted
  std::optional<double> intercept_bytes;    ///< that line at size 0
};

/// One search. Not for several threads at once.
class BatchSearch {
 public:
  /// Fails if a size or a multiple is 0, no multiple is up to the maximum, or the margin is not between 0 and 1.
  [[nodiscard]] static Result<BatchSearch> create(BatchSearchOptions options);

  /// The next size; nullopt when the search has ended.
  [[nodiscard]] std::optional<std::size_t> next() const;
  /// Result of a probe; `peak_bytes` if it fitted and is known.
  void report(std::size_t size, bool fits, std::optional<std::uint64_t> peak_bytes);
  /// Result of a size that another search has tried; does not count as a probe.
  void suppose(std::size_t size, bool fits, std::optional<std::uint64_t> peak_bytes);
  /// Corrects the limit: contexts and workspaces have been created since.
  void set_limit(std::uint64_t bytes) { options_.limit_bytes = bytes; }
  [[nodiscard]] BatchSearchResult result() const;

 private:
  explicit BatchSearch(BatchSearchOptions options);

  [[nodiscard]] bool is_close(double low, double bound) const;
  [[nodiscard]] bool can_guess() const;
  [[nodiscard]] double limit() const { return static_cast<double>(options_.limit_bytes.value_or(0)); }
  [[nodiscard]] double beyond() const;
  [[nodiscard]] double guessed() const;
  [[nodiscard]] double within_reach(double size) const;

  BatchSearchOptions options_;
  // Sizes are counted in multiples.
  double largest_;                ///< multiples up to the maximum
  std::vector<BatchPeak> peaks_;  ///< of sizes that fitted, ascending
  double fits_ = 0;               ///< largest size that fitted; 0: none so far
  double fails_;                  ///< smallest size that did not fit; infinite: none so far
  std::size_t probes_ = 0;
};

/// `fits` runs a step with this number of samples and returns whether the memory was enough. The limit is the initially
/// free memory, and a peak the maximum taken of it. Fails if the driver does not report free memory, or for invalid
/// options.
[[nodiscard]] Result<BatchSearchResult> find_batch_size(const cuda::Driver& driver, cuda::Context context,
                                                        const std::function<bool(std::size_t size)>& fits,
                                                        const BatchSearchOptions& options);

}  // namespace tidemark
