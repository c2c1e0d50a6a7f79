// The values of one metric: taken by any number of threads, none of which waits for another.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "analyze/common/quantile_sketch.h"
#include "inprocess/performance/running_moments.h"

namespace tidemark {

/// What is known of the values of a metric. Those that are not finite are counted and in nothing else.
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

/// A thread adds to a shard that no other one is using at the moment: its own, or the next that is free. Most metrics
/// are of one thread and have one shard. A value costs some 20 ns.
class MetricValues {
 public:
  MetricValues() = default;
  MetricValues(const MetricValues&) = delete;
  MetricValues& operator=(const MetricValues&) = delete;
  ~MetricValues();

  /// Any thread.
  void add(double value) noexcept;

  /// Any thread. `patient`: waits for threads that are just adding; otherwise their shards are left out
  /// (in a forked child, where these threads are not).
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
