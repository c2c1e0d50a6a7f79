// Plots of bytes over time: axes, steps, hints.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/plot/axis.h"
#include "report/plot/plot.h"
#include "report/plot/plots.h"
#include "store/store.h"

namespace tidemark {

/// At the x-axis of a frame.
[[nodiscard]] std::vector<Tick> ticks_of(const TimeFrame& frame);
/// "3.2 s", or "2026-11-23 10:02:11 UTC" if the frame has times of day.
[[nodiscard]] std::string moment_text(const TimeFrame& frame, std::uint64_t time_ns);

/// Makes a Plot; take() hands it over.
class TimePlot {
 public:
  /// The y-axis reaches at least `highest` bytes. `above`: height of the parts above the frame.
  TimePlot(const TimeFrame& frame, std::uint64_t highest, double above = 0);

  [[nodiscard]] Plot& plot() { return plot_; }
  [[nodiscard]] Plot take() { return std::move(plot_); }

  /// A curve through the points; `value` returns a point's bytes, or nullopt. Points are in order of `time_ns`.
  template <typename Point, typename Value>
  void add_curve(Role role, double thickness, double fill_opacity, const std::vector<Point>& points,
                 const Value& value) {
    PlotCurve curve{role, thickness, fill_opacity, {}};
    bool known = false;
    for (std::size_t index = 0; index < points.size(); ++index) {
      const Point& point = points[index];
      if (index + 1 < points.size() && points[index + 1].time_ns < frame_.begin_ns) continue;  // left of the frame
      const std::optional<std::uint64_t> bytes = value(point);
      if (bytes && !known) curve.runs.emplace_back();
      if (known && !bytes) curve.runs.back().push_back({x(point.time_ns), curve.runs.back().back().y});
      if (bytes) curve.runs.back().push_back({x(point.time_ns), y(static_cast<double>(*bytes))});
      known = bytes.has_value();
    }
    plot_.curves.push_back(std::move(curve));
  }

  /// Hints for equal parts of the frame: the time in their middle and the lines that `words` returns for the point that
  /// holds then. No hints before the first point.
  template <typename Point>
  void add_hints(const std::vector<Point>& points, const std::function<std::vector<std::string>(std::size_t)>& words) {
    std::vector<std::uint64_t> times;
    times.reserve(points.size());
    for (const Point& point : points) times.push_back(point.time_ns);
    add_hints_at(times, words);
  }

  /// The whole height of the frame from begin_ns to end_ns of each stretch.
  void add_band(Role role, double opacity, const std::vector<Pause>& stretches);

  /// A box from begin_ns to end_ns; `y` and `height` are its own.
  void add_box(PlotBox box, std::uint64_t begin_ns, std::uint64_t end_ns);

  void add_mark(std::uint64_t time_ns, std::vector<std::string> tooltip);

  /// "peak 1.5 GiB at 3.2 s".
  void label_peak(Role role, std::uint64_t time_ns, std::uint64_t bytes);

 private:
  [[nodiscard]] double x(std::uint64_t time_ns) const {
    return static_cast<double>(time_ns - std::min(time_ns, frame_.begin_ns)) / length_ns_;
  }
  [[nodiscard]] double y(double bytes) const;
  void add_hints_at(const std::vector<std::uint64_t>& times_ns,
                    const std::function<std::vector<std::string>(std::size_t)>& words);

  Plot plot_;
  const TimeFrame frame_;
  const double length_ns_;
  double top_bytes_ = 1;  // at the top of the frame
};

}  // namespace tidemark
