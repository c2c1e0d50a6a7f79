// The values of one metric: added by any number of threads, without waiting.
#pragma once

#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "analyze/common/quantile_sketch.h"

namespace tidemark {

/// Welford's recurrence (B. P. Welford, Technometrics 4(3), 1962); merged as in T. F. Chan, G. H. Golub and R. J.
/// LeVeque (Stanford STAN-CS-79-773, 1979): unlike sums of squares it loses no digits if the values are close to each
/// other. Finite values. One thread at a time.
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
  /// Population standard deviation: divided by the count.
  [[nodiscard]] std::optional<double> deviation() const {
    return count == 0 ? std::nullopt : std::optional(std::sqrt(squares / static_cast<double>(count)));
  }
};

/// Statistics of a metric's values. Values that are not finite are only counted.
struct ValueSummary {
  RunningMoments moments;
  std::optional<double> p50;  ///< within 1%, see QuantileSketch
  std::optional<double> p90;
  std::optional<double> p99;
  std::optional<double> last;
  std::uint64_t nan_count = 0;
  std::uint64_t infinite_count = 0;
  std::uint64_t lost_count = 0;  ///< for lack of memory
  bool joined = false;           ///< see QuantileSketch
};

/// A thread adds to a shard that no other thread is using: its own, or the next free one. Most metrics are used by one
/// thread and have one shard. A value costs some 20 ns.
class MetricValues {
 public:
  MetricValues() = default;
  MetricValues(const MetricValues&) = delete;
  MetricValues& operator=(const MetricValues&) = delete;
  ~MetricValues();

  /// Any thread.
  void add(double value) noexcept;

  /// Any thread. `patient`: waits for threads that are adding; otherwise their shards are left out (in a forked child,
  /// which does not have these threads).
  [[nodiscard]] ValueSummary summary(bool patient = true) const;
  /// The finite values since the last call. One thread at a time.
  [[nodiscard]] RunningMoments take_recent();

 private:
  static constexpr std::size_t kShards = 8;
  struct alignas(64) Shard {
    std::atomic<bool> busy = false;
    RunningMoments all;
    RunningMoments recent;
    std::uint64_t nan_count = 0;
    std::uint64_t infinite_count = 0;
    QuantileSketch sketch;
  };
  class Use;
  Shard* shard(std::size_t number) noexcept;

  std::array<std::atomic<Shard*>, kShards> shards_{};
  std::atomic<double> last_ = 0;
  std::atomic<std::uint64_t> lost_ = 0;
};

}  // namespace tidemark
