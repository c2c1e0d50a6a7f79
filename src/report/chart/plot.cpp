#include "report/chart/plot.h"

#include <algorithm>

namespace tidemark {
namespace {

constexpr double kBottom = 18;  // room below the plot
constexpr Font kSmall = {12, false, colours::kQuiet};

}  // namespace

ChartPlot::ChartPlot(Canvas& canvas, const Box& box, std::uint64_t axis_ns, std::uint64_t highest)
    : canvas_(canvas),
      plot_{box.left, box.top, box.width, box.height - kBottom},
      axis_ns_(static_cast<double>(std::max<std::uint64_t>(axis_ns, 1))),
      y_ticks_(byte_ticks(highest / 10 * 11)) {}

double ChartPlot::y(double bytes) const {
  return bottom() - plot_.height * bytes / std::max(y_ticks_.back().value, 1.0);
}

void ChartPlot::axes(bool names_times) {
  for (const Tick& tick : y_ticks_) {
    canvas_.line(left(), y(tick.value), right(), y(tick.value), 1, colours::kGrid);
    canvas_.text(tick.label, left() - 10, y(tick.value) + 4, kSmall, Canvas::Align::right);
  }
  for (const Tick& tick : time_ticks(static_cast<std::uint64_t>(axis_ns_))) {
    canvas_.line(x(tick.value), bottom(), x(tick.value), bottom() + 5, 1, colours::kAxis);
    if (names_times) canvas_.text(tick.label, x(tick.value), bottom() + 20, kSmall, Canvas::Align::centre);
  }
  if (names_times) {
    canvas_.text("time since the recording began", left() + plot_.width / 2, bottom() + 42, kSmall,
                 Canvas::Align::centre);
  }
}

void ChartPlot::label_point(double time_ns, double bytes, const std::string& words, const Colour& colour) {
  const Font font = {13, true, colours::kInk};
  const double width = canvas_.text_width(words, font);
  // On paper of its own, for another curve may run there.
  const double at = std::clamp(x(time_ns) - width / 2, left() + 8, std::max(left() + 8, right() - width - 8));
  const double baseline = y(bytes) - 13;
  Colour paper = colours::kPaper;
  paper.alpha = 0.82;
  canvas_.fill_rectangle(at - 5, baseline - 14, width + 10, 20, paper);
  canvas_.text(words, at, baseline, font);
  canvas_.dot(x(time_ns), y(bytes), 6, colours::kPaper);
  canvas_.dot(x(time_ns), y(bytes), 4.2, colour);
}

}  // namespace tidemark
