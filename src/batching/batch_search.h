// Finds the largest batch size that fits a memory, in few probes: which size is tried next follows from the peaks and
// the failures so far. Somebody else runs the steps.
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

/// By size. Each curve goes through the last peak and the nearest one well below it; each has a constant part. They are
/// powers of the size, and sums of the size and its square. A line weighs more than any other before there are more
/// peaks. `peaks` must show growth.
[[nodiscard]] std::vector<BatchGuess> guess_sizes(const std::vector<BatchPeak>& peaks, double limit_bytes);

/// The size that the limit is hardly reached beyond, with the peaks' noise counted; infinite where three peaks are not
/// known. `peaks` must show growth.
[[nodiscard]] double largest_guess(const std::vector<BatchPeak>& peaks, double limit_bytes);

struct BatchSearchOptions {
  std::size_t start = 1;                     ///< the first size tried, rounded up to a multiple
  std::optional<std::size_t> maximum;        ///< no larger size is of use, such as that of the data set
  std::size_t multiple_of = 1;               ///< sizes are multiples of it
  std::optional<std::uint64_t> limit_bytes;  ///< largest peak there is memory for
  double margin = 0.05;                      ///< how far below the largest size that fits the result may be: a share
  std::size_t probes = 8;                    ///< at most so many
};

/// Why a search has ended, or that it has not.
enum class BatchSearchEnd : std::uint8_t { searching, found, maximum_fits, nothing_fits, probes_used };

struct BatchSearchResult {
  BatchSearchEnd end = BatchSearchEnd::searching;
  std::optional<std::size_t> batch_size;    ///< the largest size that was tried and fitted
  std::optional<std::size_t> does_not_fit;  ///< the smallest size that was tried and did not
  std::size_t probes = 0;                   ///< so many sizes were tried
  std::optional<double> slope_bytes;        ///< of peaks over sizes, between the smallest and the largest that fitted
  std::optional<double> intercept_bytes;    ///< that line at size 0
};

/// One search. Not for several threads at once.
class BatchSearch {
 public:
  /// An error where a size or a multiple is 0, no multiple is up to the maximum, or the margin is not between 0 and 1.
  [[nodiscard]] static Result<BatchSearch> create(BatchSearchOptions options);

  /// The size to try; none when the search has ended.
  [[nodiscard]] std::optional<std::size_t> next() const;
  /// What came of a try; `peak_bytes` where it fitted and is known.
  void report(std::size_t size, bool fits, std::optional<std::uint64_t> peak_bytes);
  /// The same of a size that was not tried here, and is no probe: another search knows it.
  void suppose(std::size_t size, bool fits, std::optional<std::uint64_t> peak_bytes);
  /// A limit that is known better now: contexts and workspaces have been made since.
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
  double fits_ = 0;               ///< largest that fitted; 0: none so far
  double fails_;                  ///< smallest that did not; infinite: none so far
  std::size_t probes_ = 0;
};

/// `fits` runs a step with so many samples and says whether it had the memory. The limit is what is free at first, and
/// a peak what was taken of it at most. An error where the driver does not say what is free, or the options are none.
[[nodiscard]] Result<BatchSearchResult> find_batch_size(const cuda::Driver& driver, cuda::Context context,
                                                        const std::function<bool(std::size_t size)>& fits,
                                                        const BatchSearchOptions& options);

}  // namespace tidemark
