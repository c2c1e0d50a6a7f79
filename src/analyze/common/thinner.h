// Reduces points over time to a number that can be drawn, keeping all extremes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace tidemark {

/// Keeps the lowest and the highest point of each measure in each stretch of the run; of equal ones the first. Points
/// come in order of `time_ns`.
template <typename Point>
class Thinner {
 public:
  using Measure = std::optional<std::uint64_t> (*)(const Point& point);

  /// Appends at most `points` points up to `end_ns` to `out`, which must outlive it; at least the global extremes.
  Thinner(std::uint64_t end_ns, std::size_t points, std::vector<Measure> measures, std::vector<Point>& out)
      : measures_(std::move(measures)),
        stretch_ns_(end_ns / (std::max<std::size_t>(2, points / extremes()) - 1) + 1),
        out_(out) {}

  void add(const Point& point) {
    const std::uint64_t stretch = point.time_ns / stretch_ns_;
    if (count_ != 0 && stretch != stretch_) flush();
    stretch_ = stretch;
    const Kept kept = {point, count_++};
    if (kept.order == 0) {
      kept_.assign(extremes(), kept);
      return;
    }
    for (std::size_t index = 0; index < measures_.size(); ++index) {
      Kept& lowest = kept_[2 * index];
      Kept& highest = kept_[2 * index + 1];
      const auto value = measures_[index](point);
      if (value < measures_[index](lowest.point)) lowest = kept;
      if (value > measures_[index](highest.point)) highest = kept;
    }
  }

  /// After the last point.
  void flush() {
    if (count_ == 0) return;
    std::sort(kept_.begin(), kept_.end(), [](const Kept& left, const Kept& right) { return left.order < right.order; });
    for (std::size_t index = 0; index < kept_.size(); ++index) {
      if (index == 0 || kept_[index].order != kept_[index - 1].order) out_.push_back(kept_[index].point);
    }
    count_ = 0;
  }

 private:
  struct Kept {
    Point point;
    std::uint64_t order = 0;
  };

  [[nodiscard]] std::size_t extremes() const { return 2 * measures_.size(); }

  std::vector<Measure> measures_;
  std::uint64_t stretch_ns_;
  std::vector<Point>& out_;
  std::vector<Kept> kept_;  // lowest and highest of each measure
  std::uint64_t stretch_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace tidemark
