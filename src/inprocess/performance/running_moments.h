// Count, mean, spread and extremes of values, one at a time.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

namespace tidemark {

/// Welford's recurrence (B. P. Welford, Technometrics 4(3), 1962); merging as T. F. Chan, G. H. Golub and R. J. LeVeque
/// have it (Stanford STAN-CS-79-773, 1979): unlike sums of squares it loses no digits where the values are close to
/// each other. Finite values. One thread at a time.
struct RunningMoments {
  std::uint64_t count = 0;
  double mean = 0;
  double squares = 0;  ///< sum of the squares of the distances from the mean
  double lowest = std::numeric_limits<double>::infinity();
  double highest = -std::numeric_limits<double>::infinity();

  void add(double value) {
    ++count;
    const double from_mean = value - mean;
    mean += from_mean / static_cast<double>(count);
    squares += from_mean * (value - mean);
    lowest = value < lowest ? value : lowest;
    highest = value > highest ? value : highest;
  }

  void merge(const RunningMoments& other) {
    if (other.count == 0) return;
    const auto own = static_cast<double>(count);
    const auto theirs = static_cast<double>(other.count);
    const double apart = other.mean - mean;
    mean += apart * theirs / (own + theirs);
    squares += other.squares + apart * apart * own * theirs / (own + theirs);
    count += other.count;
    lowest = other.lowest < lowest ? other.lowest : lowest;
    highest = other.highest > highest ? other.highest : highest;
  }

  [[nodiscard]] double sum() const { return mean * static_cast<double>(count); }
  /// Of these values, not estimated for more: divided by their count.
  [[nodiscard]] std::optional<double> deviation() const {
    return count == 0 ? std::nullopt : std::optional(std::sqrt(squares / static_cast<double>(count)));
  }
};

}  // namespace tidemark
