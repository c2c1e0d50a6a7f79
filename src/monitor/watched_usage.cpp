#include "monitor/watched_usage.h"

#include <algorithm>
#include <utility>

namespace tidemark {
namespace {

void join(WatchedUsagePoint& point, const WatchedUsagePoint& next) {
  point.end_ns = next.end_ns;
  point.low_bytes = std::min(point.low_bytes, next.low_bytes);
  point.high_bytes = std::max(point.high_bytes, next.high_bytes);
  point.last_bytes = next.last_bytes;
}

}  // namespace

void WatchedUsage::add(std::uint64_t time_ns, std::uint64_t bytes, std::optional<std::uint64_t> peak_bytes) {
  const WatchedUsagePoint sample{time_ns, time_ns, bytes, std::max(bytes, peak_bytes.value_or(0)), bytes};
  if (newest_.size() == max_newest_) newest_.erase(newest_.begin());
  newest_.push_back({time_ns, bytes, sample.high_bytes});
  late_peak_ = std::exchange(next_late_peak_, 0);
  if (samples_ == 0) first_ = bytes;
  if (samples_ == 0 || sample.high_bytes > peak_) {
    peak_ = sample.high_bytes;
    peak_at_ns_ = time_ns;
    peak_is_sampled_ = sample.high_bytes == bytes;
  }
  ++samples_;
  sum_ += static_cast<double>(bytes);
  if (!points_.empty() && in_last_point_ < samples_a_point_) {
    ++in_last_point_;
    return join(points_.back(), sample);
  }
  if (points_.size() == capacity_) join_neighbours();
  points_.push_back(sample);
  in_last_point_ = 1;
}

void WatchedUsage::add_peak(std::uint64_t peak_bytes) {
  if (empty()) return;
  next_late_peak_ = std::max(next_late_peak_, peak_bytes);
  WatchedSample& last = newest_.back();
  last.high_bytes = std::max(last.high_bytes, peak_bytes);
  points_.back().high_bytes = std::max(points_.back().high_bytes, peak_bytes);
  if (peak_bytes <= peak_) return;
  peak_ = peak_bytes;
  peak_at_ns_ = last.time_ns;
  peak_is_sampled_ = false;
}

WatchedUsage WatchedUsage::condensed(std::size_t capacity, std::size_t newest) const {
  WatchedUsage fewer = *this;
  fewer.capacity_ = WatchedUsage(capacity).capacity_;
  while (fewer.points_.size() > fewer.capacity_) {
    if (fewer.points_.size() % 2 == 0) fewer.in_last_point_ += fewer.samples_a_point_;
    fewer.join_neighbours();
  }
  fewer.max_newest_ = std::clamp<std::size_t>(newest, 1, kNewest);
  if (newest_.size() > fewer.max_newest_) {
    fewer.newest_.assign(newest_.end() - static_cast<std::ptrdiff_t>(fewer.max_newest_), newest_.end());
  }
  fewer.late_peak_ = fewer.next_late_peak_ = 0;
  return fewer;
}

// With an odd number, the last one stays alone.
void WatchedUsage::join_neighbours() {
  for (std::size_t n = 0; n < points_.size(); n += 2) {
    WatchedUsagePoint point = points_[n];
    if (n + 1 < points_.size()) join(point, points_[n + 1]);
    points_[n / 2] = point;
  }
  points_.resize((points_.size() + 1) / 2);
  samples_a_point_ *= 2;
}

}  // namespace tidemark
