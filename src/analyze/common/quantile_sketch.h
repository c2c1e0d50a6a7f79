// Quantiles of any number of values in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tidemark {

/// DDSketch: C. Masson, J. E. Rim, H. K. Lee, "DDSketch: A Fast and Fully-Mergeable Quantile Sketch with Relative-Error
/// Guarantees", PVLDB 12(12), 2019, with its bounded store that joins the bins of the smallest magnitudes.
///
/// Values fall into bins with bounds that grow by (1 + a) / (1 - a), a being kRelativeError. So a quantile is within 1%
/// of the value of this rank, as long as the values of one sign span fewer than kMaxBins bins, which are 17 decades;
/// values closer to zero are counted in the bin of the smallest magnitude (see joined()). Merging two sketches equals
/// adding all values to one. Not thread-safe. At most 33 KB, usually far less.
class QuantileSketch {
 public:
  static constexpr double kRelativeError = 0.01;
  static constexpr std::size_t kMaxBins = 2048;  ///< of each sign

  /// Finite values only. May throw std::bad_alloc; then the value is not counted.
  void add(double value);
  void merge(const QuantileSketch& other);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// The value of rank floor(share * (count - 1)), from 0: `share` is from 0 to 1. nullopt without values.
  [[nodiscard]] std::optional<double> quantile(double share) const;
  /// Whether values were joined beyond the relative error.
  [[nodiscard]] bool joined() const { return negative_.joined || positive_.joined; }

 private:
  friend struct StateFields;  ///< serialized by monitor/state_codec.cpp
  struct Bins {
    std::vector<std::uint64_t> counts;
    std::int32_t first = 0;  ///< index of counts[0]
    bool joined = false;

    void add(std::int32_t index, std::uint64_t count);
    void cover(std::int32_t index);
    [[nodiscard]] std::int32_t last() const { return first + static_cast<std::int32_t>(counts.size()) - 1; }
  };

  std::uint64_t count_ = 0;
  std::uint64_t zeros_ = 0;
  Bins positive_;
  Bins negative_;  ///< by magnitude
};

}  // namespace tidemark
