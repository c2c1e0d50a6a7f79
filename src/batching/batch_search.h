// Finds the largest batch size that fits a memory, in few probes: which size is tried next follows from the peaks and
// the failures so far. Somebody else runs the steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "batching/growth_curves.h"

namespace tidemark {

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

}  // namespace tidemark
