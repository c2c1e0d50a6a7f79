#include "live/watched_usage.h"

#include <algorithm>

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
  last_ = sample;
  if (samples_ == 0) first_ = bytes;
  if (samples_ == 0 || sample.high_bytes > peak_) {
    peak_ = sample.high_bytes;
    peak_at_ns_ = time_ns;
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

void WatchedUsage::join_neighbours() {
  for (std::size_t n = 0; n < points_.size(); n += 2) {
    WatchedUsagePoint point = points_[n];
    join(point, points_[n + 1]);
    points_[n / 2] = point;
  }
  points_.resize(points_.size() / 2);
  samples_a_point_ *= 2;
}

}  // namespace tidemark
