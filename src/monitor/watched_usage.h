// Use of a memory over a time of any length, in a bounded number of points with even resolution: for charts and
// summaries. Forecasts need the latest samples unmerged (analyze/forecast/usage_history.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tidemark {

/// One sample, or several that follow each other, joined.
struct WatchedUsagePoint {
  std::uint64_t begin_ns = 0;  ///< of the first sample
  std::uint64_t end_ns = 0;    ///< of the last one
  std::uint64_t low_bytes = 0;
  std::uint64_t high_bytes = 0;  ///< including recorded peaks between samples
  std::uint64_t last_bytes = 0;

  bool operator==(const WatchedUsagePoint&) const = default;
};

/// A single sample.
struct WatchedSample {
  std::uint64_t time_ns = 0;
  std::uint64_t bytes = 0;
  std::uint64_t high_bytes = 0;  ///< including recorded peaks between samples

  bool operator==(const WatchedSample&) const = default;
};

/// When there are `capacity` points, each two neighbours are merged, and later points have twice as many samples: the
/// extremes stay, only their times get coarser. Takes at most sizeof(WatchedUsagePoint) bytes a point and 3 KiB. One
/// thread at a time.
class WatchedUsage {
 public:
  static constexpr std::size_t kNewest = 128;

  /// At least 2 points; an even number.
  explicit WatchedUsage(std::size_t capacity) : capacity_(capacity < 2 ? 2 : capacity / 2 * 2) {}
  WatchedUsage() : WatchedUsage(1024) {}
  /// The history that a smaller capacity would have given, with this many of the latest samples.
  [[nodiscard]] WatchedUsage condensed(std::size_t capacity, std::size_t newest = 1) const;

  /// Samples come in the order of their times. `peak_bytes`: the peak since the previous sample, if known.
  void add(std::uint64_t time_ns, std::uint64_t bytes, std::optional<std::uint64_t> peak_bytes = {});

  /// A peak of an earlier interval, reported late: counts as the latest sample's.
  void add_peak(std::uint64_t peak_bytes);

  [[nodiscard]] bool empty() const { return points_.empty(); }
  [[nodiscard]] std::span<const WatchedUsagePoint> points() const { return points_; }
  [[nodiscard]] std::uint64_t sample_count() const { return samples_; }
  // Undefined for a history without samples.
  [[nodiscard]] std::uint64_t first_bytes() const { return first_; }
  [[nodiscard]] std::uint64_t last_bytes() const { return points_.back().last_bytes; }
  [[nodiscard]] const WatchedSample& last_sample() const { return newest_.back(); }
  /// The latest samples, oldest first, at most kNewest, for callers that check now and then; sample_count() numbers
  /// them.
  [[nodiscard]] std::span<const WatchedSample> newest() const { return newest_; }
  /// The highest add_peak() between the previous and the latest sample, for callers that take each sample when it
  /// comes; 0: none.
  [[nodiscard]] std::uint64_t late_peak_bytes() const { return late_peak_; }
  [[nodiscard]] std::uint64_t peak_bytes() const { return peak_; }
  [[nodiscard]] std::uint64_t peak_at_ns() const { return peak_at_ns_; }   ///< of the first sample with it
  [[nodiscard]] bool peak_is_sampled() const { return peak_is_sampled_; }  ///< else it was between samples
  [[nodiscard]] double mean_bytes() const { return sum_ / static_cast<double>(samples_); }
  [[nodiscard]] std::uint64_t begin_ns() const { return points_.front().begin_ns; }
  [[nodiscard]] std::uint64_t end_ns() const { return points_.back().end_ns; }

 private:
  friend struct StateFields;  ///< the members that are sent (state_codec.cpp)
  void join_neighbours();

  std::size_t capacity_;
  std::size_t max_newest_ = kNewest;
  std::vector<WatchedUsagePoint> points_;
  std::uint64_t samples_ = 0;
  std::uint64_t samples_a_point_ = 1;  ///< of a full point
  std::uint64_t in_last_point_ = 0;
  std::uint64_t first_ = 0;
  std::vector<WatchedSample> newest_;
  std::uint64_t peak_ = 0;
  std::uint64_t peak_at_ns_ = 0;
  bool peak_is_sampled_ = true;
  std::uint64_t late_peak_ = 0;
  std::uint64_t next_late_peak_ = 0;
  double sum_ = 0;
};

}  // namespace tidemark
