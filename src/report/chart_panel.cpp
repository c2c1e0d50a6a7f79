#include "report/chart_panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/units.h"
#include "report/axis.h"

namespace tidemark {
namespace {

constexpr double kTitle = 34;   // room above the plot
constexpr double kBottom = 18;  // and below it
constexpr Font kSmall = {12, false, colours::kQuiet};

class PanelDrawing {
 public:
  PanelDrawing(Canvas& canvas, const ChartPanel& panel, const Box& box, std::uint64_t axis_ns)
      : canvas_(canvas),
        panel_(panel),
        plot_{box.left, box.top + kTitle, box.width, box.height - kTitle - kBottom},
        axis_ns_(static_cast<double>(std::max<std::uint64_t>(axis_ns, 1))),
        y_ticks_(byte_ticks(highest(*panel.series) / 10 * 11)),
        draws_active_(panel.series->active_differs()) {}

  void axes(bool names_times) {
    for (const Tick& tick : y_ticks_) {
      canvas_.line(plot_.left, y(tick.value), right(), y(tick.value), 1, colours::kGrid);
      canvas_.text(tick.label, plot_.left - 10, y(tick.value) + 4, kSmall, Canvas::Align::right);
    }
    for (const Tick& tick : time_ticks(static_cast<std::uint64_t>(axis_ns_))) {
      canvas_.line(x(tick.value), bottom(), x(tick.value), bottom() + 5, 1, colours::kAxis);
      if (names_times) canvas_.text(tick.label, x(tick.value), bottom() + 20, kSmall, Canvas::Align::centre);
    }
    if (names_times) {
      canvas_.text("time since the recording began", plot_.left + plot_.width / 2, bottom() + 42, kSmall,
                   Canvas::Align::centre);
    }
  }

  void curves() {
    const std::vector<TimelinePoint>& points = panel_.series->points;
    if (points.empty()) return;
    const double start = x(static_cast<double>(points.front().time_ns));  // nothing is known before
    Colour area = colours::kAllocated;
    area.alpha = 0.30;
    canvas_.move_to(start, y(0));
    steps([](const TimelinePoint& point) { return std::optional(point.allocated_bytes); });
    canvas_.line_to(x(static_cast<double>(points.back().time_ns)), y(0));
    canvas_.fill(area);
    canvas_.move_to(start, y(0));
    steps([](const TimelinePoint& point) { return std::optional(point.allocated_bytes); });
    canvas_.stroke(0.9, colours::kAllocated);
    if (draws_active_) {
      canvas_.move_to(start, y(0));
      steps([](const TimelinePoint& point) { return point.active_bytes; });
      canvas_.stroke(1.4, colours::kActive);
    }
    if (!panel_.series->peak_reserved_bytes) return;
    canvas_.move_to(start, y(0));
    steps([](const TimelinePoint& point) { return point.reserved_bytes; });
    canvas_.stroke(1.8, colours::kReserved);
  }

  void title() {
    const double baseline = plot_.top - 14;
    const Font font = {15, true, colours::kInk};
    double at = right();
    if (panel_.series->peak_reserved_bytes) at = legend("reserved", colours::kReserved, at, baseline, 3);
    if (draws_active_) at = legend("active", colours::kActive, at, baseline, 3);
    at = legend("allocated", colours::kAllocated, at, baseline, 10);
    canvas_.text(canvas_.fit(panel_.title, at - plot_.left - 20, font), plot_.left, baseline, font);
  }

  void peak() {
    const TimelineSeries& series = *panel_.series;
    if (!series.peak_allocated_at_ns) return;
    const double at = x(static_cast<double>(*series.peak_allocated_at_ns));
    const double height = y(static_cast<double>(series.peak_allocated_bytes));
    const std::string words = fmt::format("peak {} at {}", format_bytes(series.peak_allocated_bytes),
                                          format_duration_ns(*series.peak_allocated_at_ns));
    const Font font = {13, true, colours::kInk};
    const double width = canvas_.text_width(words, font);
    // Above the peak, moved inwards at the edges; on paper of its own, for the reserved curve may run there.
    const double left = std::clamp(at - width / 2, plot_.left + 8, std::max(plot_.left + 8, right() - width - 8));
    const double baseline = height - 13;
    Colour paper = colours::kPaper;
    paper.alpha = 0.82;
    canvas_.fill_rectangle(left - 5, baseline - 14, width + 10, 20, paper);
    canvas_.text(words, left, baseline, font);
    canvas_.dot(at, height, 6, colours::kPaper);
    canvas_.dot(at, height, 4.2, colours::kAllocated);
  }

  void failures() {
    for (const std::uint64_t time_ns : panel_.out_of_memory_ns) {
      const double at = x(static_cast<double>(time_ns));
      canvas_.line(at, plot_.top, at, bottom(), 1.4, colours::kAlarm);
    }
    if (panel_.out_of_memory_ns.empty()) return;
    const Font font = {12, true, colours::kAlarm};
    const double at = x(static_cast<double>(panel_.out_of_memory_ns.front()));
    const double room = canvas_.text_width("out of memory", font) + 8;
    canvas_.text("out of memory", at + room < right() ? at + 6 : at - room + 2, bottom() - 8, font);
  }

 private:
  static std::uint64_t highest(const TimelineSeries& series) {
    return std::max(series.peak_allocated_bytes,
                    series.peak_reserved_bytes.value_or(series.peak_active_bytes.value_or(0)));
  }
  [[nodiscard]] double x(double time_ns) const { return plot_.left + plot_.width * time_ns / axis_ns_; }
  [[nodiscard]] double y(double bytes) const {
    return bottom() - plot_.height * bytes / std::max(y_ticks_.back().value, 1.0);
  }
  [[nodiscard]] double right() const { return plot_.left + plot_.width; }
  [[nodiscard]] double bottom() const { return plot_.top + plot_.height; }

  // Continues the path along the points: a value holds until the next one.
  template <typename Value>
  void steps(const Value& value) {
    double height = y(0);
    for (const TimelinePoint& point : panel_.series->points) {
      const double at = x(static_cast<double>(point.time_ns));
      canvas_.line_to(at, height);
      height = y(static_cast<double>(value(point).value_or(0)));
      canvas_.line_to(at, height);
    }
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
  const Box plot_;
  const double axis_ns_;
  const std::vector<Tick> y_ticks_;
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
