// How much of a memory was used over a time of any length, in a bounded number of points: to be drawn and summed up, so
// all of the time alike. What is forecast needs the latest samples as they came (analyze/forecast/usage_history.h).
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
  std::uint64_t high_bytes = 0;  ///< with what recorders saw between samples
  std::uint64_t last_bytes = 0;

  bool operator==(const WatchedUsagePoint&) const = default;
};

/// One sample by itself.
struct WatchedSample {
  std::uint64_t time_ns = 0;
  std::uint64_t bytes = 0;
  std::uint64_t high_bytes = 0;  ///< with what recorders saw between samples

  bool operator==(const WatchedSample&) const = default;
};

/// When there are `capacity` points, each two neighbours become one, and later points have twice as many samples: the
/// extremes stay, only their times get coarser. Takes sizeof(WatchedUsagePoint) bytes a point and 3 KiB, and never
/// more. One thread at a time.
class WatchedUsage {
 public:
  static constexpr std::size_t kNewest = 128;

  /// At least 2 points; an even number.
  explicit WatchedUsage(std::size_t capacity) : capacity_(capacity < 2 ? 2 : capacity / 2 * 2) {}
  WatchedUsage() : WatchedUsage(1024) {}
  /// What a history of fewer points would have become, which keeps so many of its latest samples.
  [[nodiscard]] WatchedUsage condensed(std::size_t capacity, std::size_t newest = 1) const;

  /// Samples come in the order of their times. `peak_bytes`: the most since the sample before, where it is known.
  void add(std::uint64_t time_ns, std::uint64_t bytes, std::optional<std::uint64_t> peak_bytes = {});

  /// The most of a while before, which recorders tell later: counts as the latest sample's.
  void add_peak(std::uint64_t peak_bytes);

  [[nodiscard]] bool empty() const { return points_.empty(); }
  [[nodiscard]] std::span<const WatchedUsagePoint> points() const { return points_; }
  [[nodiscard]] std::uint64_t sample_count() const { return samples_; }
  // The following have no meaning for a history without samples.
  [[nodiscard]] std::uint64_t first_bytes() const { return first_; }
  [[nodiscard]] std::uint64_t last_bytes() const { return points_.back().last_bytes; }
  [[nodiscard]] const WatchedSample& last_sample() const { return newest_.back(); }
  /// The latest samples, oldest first, at most kNewest, for who looks now and then; sample_count() numbers them.
  [[nodiscard]] std::span<const WatchedSample> newest() const { return newest_; }
  /// The most that add_peak() said between the sample before and the latest one, for who takes each sample when it
  /// comes; 0: nothing.
  [[nodiscard]] std::uint64_t late_peak_bytes() const { return late_peak_; }
  [[nodiscard]] std::uint64_t peak_bytes() const { return peak_; }
  [[nodiscard]] std::uint64_t peak_at_ns() const { return peak_at_ns_; }   ///< of the sample that said so first
  [[nodiscard]] bool peak_is_sampled() const { return peak_is_sampled_; }  ///< else it was between samples
  [[nodiscard]] double mean_bytes() const { return sum_ / static_cast<double>(samples_); }
  [[nodiscard]] std::uint64_t begin_ns() const { return points_.front().begin_ns; }
  [[nodiscard]] std::uint64_t end_ns() const { return points_.back().end_ns; }

 private:
  friend struct StateFields;  ///< what is sent of it (state_codec.cpp)
  void join_neighbours();

  std::size_t capacity_;
  std::size_t max_newest_ = kNewest;
  std::vector<WatchedUsagePoint> points_;
  std::uint64_t samples_ = 0;
  std::uint64_t samples_a_point_ = 1;  ///< of a full one
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
