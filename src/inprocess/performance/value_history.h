// A number over a time of any length, in a bounded count of points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "inprocess/performance/running_moments.h"

namespace tidemark {

/// Values of one span of time.
struct HistoryMoment {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  double lowest = 0;
  double highest = 0;
  double mean = 0;
  std::uint64_t count = 0;
};

/// When there are kCapacity points, each two neighbours become one, and later points have twice as long spans: extremes
/// and means stay exact, only their times get coarser. One thread at a time.
class ValueHistory {
 public:
  static constexpr std::size_t kCapacity = 512;

  /// Spans come in order of time. Without values in it nothing is added.
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

}  // namespace tidemark
