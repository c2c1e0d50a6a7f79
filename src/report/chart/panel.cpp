#include "report/chart/panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/units.h"

namespace tidemark {
namespace {

constexpr double kTitle = 34;  // room above the plot

class PanelDrawing {
 public:
  PanelDrawing(Canvas& canvas, const ChartPanel& panel, const Box& box, std::uint64_t axis_ns)
      : canvas_(canvas),
        panel_(panel),
        plot_(canvas, {box.left, box.top + kTitle, box.width, box.height - kTitle}, axis_ns, highest(*panel.series)),
        draws_active_(panel.series->active_differs()) {}

  void axes(bool names_times) { plot_.axes(names_times); }

  void curves() {
    const std::vector<TimelinePoint>& points = panel_.series->points;
    if (points.empty()) return;
    Colour area = colours::kAllocated;
    area.alpha = 0.30;
    const auto allocated = [](const TimelinePoint& point) { return point.allocated_bytes; };
    start(points);
    plot_.steps(points, allocated);
    canvas_.line_to(plot_.x(static_cast<double>(points.back().time_ns)), plot_.y(0));
    canvas_.fill(area);
    start(points);
    plot_.steps(points, allocated);
    canvas_.stroke(0.9, colours::kAllocated);
    if (draws_active_) {
      start(points);
      plot_.steps(points, [](const TimelinePoint& point) { return point.active_bytes; });
      canvas_.stroke(1.4, colours::kActive);
    }
    if (!panel_.series->peak_reserved_bytes) return;
    start(points);
    plot_.steps(points, [](const TimelinePoint& point) { return point.reserved_bytes; });
    canvas_.stroke(1.8, colours::kReserved);
  }

  void title() {
    const double baseline = plot_.top() - 14;
    const Font font = {15, true, colours::kInk};
    double at = plot_.right();
    if (panel_.series->peak_reserved_bytes) at = legend("reserved", colours::kReserved, at, baseline, 3);
    if (draws_active_) at = legend("active", colours::kActive, at, baseline, 3);
    at = legend("allocated", colours::kAllocated, at, baseline, 10);
    canvas_.text(canvas_.fit(panel_.title, at - plot_.left() - 20, font), plot_.left(), baseline, font);
  }

  void peak() {
    const TimelineSeries& series = *panel_.series;
    if (!series.peak_allocated_at_ns) return;
    plot_.label_point(static_cast<double>(*series.peak_allocated_at_ns),
                      static_cast<double>(series.peak_allocated_bytes),
                      fmt::format("peak {} at {}", format_bytes(series.peak_allocated_bytes),
                                  format_duration_ns(*series.peak_allocated_at_ns)),
                      colours::kAllocated);
  }

  void failures() {
    for (const std::uint64_t time_ns : panel_.out_of_memory_ns) {
      const double at = plot_.x(static_cast<double>(time_ns));
      canvas_.line(at, plot_.top(), at, plot_.bottom(), 1.4, colours::kAlarm);
    }
    if (panel_.out_of_memory_ns.empty()) return;
    const Font font = {12, true, colours::kAlarm};
    const double at = plot_.x(static_cast<double>(panel_.out_of_memory_ns.front()));
    const double room = canvas_.text_width("out of memory", font) + 8;
    canvas_.text("out of memory", at + room < plot_.right() ? at + 6 : at - room + 2, plot_.bottom() - 8, font);
  }

 private:
  static std::uint64_t highest(const TimelineSeries& series) {
    return std::max(series.peak_allocated_bytes,
                    series.peak_reserved_bytes.value_or(series.peak_active_bytes.value_or(0)));
  }
  // Nothing is known before the first point.
  void start(const std::vector<TimelinePoint>& points) {
    canvas_.move_to(plot_.x(static_cast<double>(points.front().time_ns)), plot_.y(0));
  }

  // Draws from `at` to the left; returns where it began.
  double legend(const char* words, const Colour& colour, double at, double baseline, double thickness) {
    const Font font = {13, false, colours::kInk};
    const double left = at - canvas_.text_width(words, font);
    canvas_.text(words, left, baseline, font);
    canvas_.fill_rectangle(left - 24, baseline - 5 - thickness / 2, 18, thickness, colour);
    return left - 24 - 20;
  }

  Canvas& canvas_;
  const ChartPanel& panel_;
  ChartPlot plot_;
  const bool draws_active_;  // otherwise it would hide allocated
};

}  // namespace

void draw_panel(Canvas& canvas, const ChartPanel& panel, const Box& box, std::uint64_t axis_ns, bool names_times) {
  PanelDrawing drawing(canvas, panel, box, axis_ns);
  drawing.axes(names_times);
  drawing.curves();
  drawing.failures();
  drawing.title();
  drawing.peak();
}

}  // namespace tidemark
