// The axes of a chart of bytes over time, and what is drawn along them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/chart/axis.h"
#include "report/chart/canvas.h"

namespace tidemark {

struct Box {
  double left;
  double top;
  double width;
  double height;
};

/// Not thread-safe; borrows the canvas.
class ChartPlot {
 public:
  /// `box`: of the plot and what is below it. The time axis spans `axis_ns`, the other one `highest` bytes.
  ChartPlot(Canvas& canvas, const Box& box, std::uint64_t axis_ns, std::uint64_t highest);

  [[nodiscard]] double x(double time_ns) const { return plot_.left + plot_.width * time_ns / axis_ns_; }
  [[nodiscard]] double y(double bytes) const;
  [[nodiscard]] double left() const { return plot_.left; }
  [[nodiscard]] double right() const { return plot_.left + plot_.width; }
  [[nodiscard]] double top() const { return plot_.top; }
  [[nodiscard]] double bottom() const { return plot_.top + plot_.height; }

  /// Lines and labels; the times only where `names_times`.
  void axes(bool names_times);

  /// "words" at a point, above it, on paper of its own, moved inwards at the edges.
  void label_point(double time_ns, double bytes, const std::string& words, const Colour& colour);

  /// Continues the path along the points, from the height `from` on: a value holds until the next one. Points without a
  /// value are at 0.
  template <typename Point, typename Value>
  void steps(const std::vector<Point>& points, const Value& value) {
    double height = y(0);
    for (const Point& point : points) {
      const double at = x(static_cast<double>(point.time_ns));
      canvas_.line_to(at, height);
      height = y(static_cast<double>(std::optional<std::uint64_t>(value(point)).value_or(0)));
      canvas_.line_to(at, height);
    }
  }

 private:
  Canvas& canvas_;
  const Box plot_;
  const double axis_ns_;
  const std::vector<Tick> y_ticks_;
};

}  // namespace tidemark
