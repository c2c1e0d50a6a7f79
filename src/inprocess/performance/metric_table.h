// The metrics of a monitor by name: lock-free lookup, never removed.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inprocess/performance/metric_values.h"

namespace tidemark {

/// Values of one time span.
struct HistoryMoment {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  double lowest = 0;
  double highest = 0;
  double mean = 0;
  std::uint64_t count = 0;
};

/// When there are kCapacity points, each two neighbours are merged, and later points have twice as long spans: extremes
/// and means stay exact, only their times get coarser. One thread at a time.
class ValueHistory {
 public:
  static constexpr std::size_t kCapacity = 512;

  /// Spans come in order of time. A span without values is ignored.
  void add(std::uint64_t begin_ns, std::uint64_t end_ns, const RunningMoments& values) {
    if (values.count == 0) return;
    const HistoryMoment moment{begin_ns, end_ns, values.lowest, values.highest, values.mean, values.count};
    if (in_last_ > 0 && in_last_ < a_point_) {
      join(points_.back(), moment);
    } else {
      if (points_.size() == kCapacity) join_neighbours();
      points_.push_back(moment);
      in_last_ = 0;
    }
    ++in_last_;
  }

  [[nodiscard]] std::span<const HistoryMoment> points() const { return points_; }

 private:
  static void join(HistoryMoment& into, const HistoryMoment& later) {
    const auto count = static_cast<double>(into.count + later.count);
    into.mean += (later.mean - into.mean) * static_cast<double>(later.count) / count;
    into.count += later.count;
    into.end_ns = later.end_ns;
    into.lowest = later.lowest < into.lowest ? later.lowest : into.lowest;
    into.highest = later.highest > into.highest ? later.highest : into.highest;
  }
  void join_neighbours() {
    for (std::size_t n = 0; n < kCapacity / 2; ++n) {
      points_[n] = points_[2 * n];
      join(points_[n], points_[2 * n + 1]);
    }
    points_.resize(kCapacity / 2);
    a_point_ *= 2;
  }

  std::vector<HistoryMoment> points_;
  std::uint64_t a_point_ = 1;  ///< spans in a full point
  std::uint64_t in_last_ = 0;
};

struct NamedMetric {
  explicit NamedMetric(std::string_view text) : name(text) {}

  const std::string name;
  MetricValues values;
};

/// Thread-safe. Names have at most kMaxNameBytes bytes; longer ones are cut.
class MetricTable {
 public:
  static constexpr std::size_t kMaxNames = 1000;
  static constexpr std::size_t kMaxNameBytes = 256;

  MetricTable() = default;
  MetricTable(const MetricTable&) = delete;
  MetricTable& operator=(const MetricTable&) = delete;
  ~MetricTable();

  /// Finds or adds a name. Null if there are too many, or no memory is left.
  NamedMetric* find(std::string_view name) noexcept;
  /// Names so far, in the order in which they were added.
  [[nodiscard]] std::size_t size() const { return size_.load(std::memory_order_acquire); }
  [[nodiscard]] NamedMetric& operator[](std::size_t position) const { return *ordered_[position]; }

 private:
  static constexpr std::size_t kSlots = 2048;  // a power of two, at most half full
  NamedMetric* add(std::string_view name, std::size_t slot) noexcept;

  std::array<std::atomic<NamedMetric*>, kSlots> slots_{};
  std::array<NamedMetric*, kMaxNames> ordered_{};
  std::atomic<std::size_t> size_ = 0;
  std::mutex adding_;
};

}  // namespace tidemark
