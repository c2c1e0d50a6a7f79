#include "report/plot/time_plot.h"

#include <fmt/format.h>

#include "base/units.h"
#include "query/words/recording_text.h"
#include "report/plot/axis.h"

namespace tidemark {
namespace {

constexpr double kAbove = 26;       // the frame: room for the peak's label
constexpr double kBelow = 26;       // it: room for the times
constexpr double kBelowTicks = 10;  // the plot, if the ticks have no labels
constexpr std::size_t kHints = 120;
constexpr double kNear = 0.001;  // of the width

}  // namespace

std::vector<Tick> ticks_of(const TimeFrame& frame) {
  const std::uint64_t duration_ns = std::max<std::uint64_t>(frame.duration_ns, 1);
  return frame.begin_wall_ns ? clock_ticks(*frame.begin_wall_ns, duration_ns) : time_ticks(duration_ns, frame.begin_ns);
}

std::string moment_text(const TimeFrame& frame, std::uint64_t time_ns) {
  return frame.begin_wall_ns ? wall_clock_text(*frame.begin_wall_ns + time_ns) : format_duration_ns(time_ns);
}

TimePlot::TimePlot(const TimeFrame& frame, std::uint64_t highest, double above)
    : frame_(frame), length_ns_(static_cast<double>(std::max(frame.duration_ns, frame.begin_ns + 1) - frame.begin_ns)) {
  plot_.frame_top = above + kAbove;
  plot_.frame_height = frame.height;
  plot_.height = plot_.frame_top + frame.height + (frame.names_times ? kBelow : kBelowTicks);
  const std::vector<Tick> bytes = byte_ticks(highest);
  top_bytes_ = std::max(bytes.back().value, 1.0);
  plot_.grid = true;
  for (const Tick& tick : bytes) plot_.margin.push_back({y(tick.value), tick.label});
  for (Tick& tick : ticks_of(frame)) {
    const double at = (tick.value - static_cast<double>(frame.begin_ns)) / length_ns_;
    // Words at the edges stay inside.
    const PlotAlign align = at > 0.96 ? PlotAlign::end : at < 0.02 ? PlotAlign::start : PlotAlign::middle;
    plot_.ticks.push_back({at, frame.names_times ? std::move(tick.label) : std::string(), align});
  }
}

double TimePlot::y(double bytes) const {
  return plot_.frame_top + plot_.frame_height * (1 - bytes / top_bytes_);
}

void TimePlot::add_hints_at(const std::vector<std::uint64_t>& times_ns,
                            const std::function<std::vector<std::string>(std::size_t)>& words) {
  std::size_t next = 0;
  for (std::size_t index = 0; index < kHints; ++index) {
    const double middle =
        static_cast<double>(frame_.begin_ns) + (static_cast<double>(index) + 0.5) / kHints * length_ns_;
    while (next < times_ns.size() && static_cast<double>(times_ns[next]) <= middle) ++next;
    if (next == 0) continue;
    PlotHint hint{static_cast<double>(index) / kHints, 1.0 / kHints, words(next - 1)};
    hint.tooltip.insert(hint.tooltip.begin(), moment_text(frame_, static_cast<std::uint64_t>(middle)));
    plot_.hints.push_back(std::move(hint));
  }
}

void TimePlot::add_band(Role role, double opacity, const std::vector<Pause>& stretches) {
  PlotCurve band{role, 0, opacity, {}};
  for (const Pause& stretch : stretches) {
    // Boundaries that are too close to be distinguished are drawn as one.
    if (!band.runs.empty() && x(stretch.begin_ns) - band.runs.back().back().x < kNear) {
      band.runs.back().back().x = x(stretch.end_ns);
    } else {
      band.runs.push_back({{x(stretch.begin_ns), plot_.frame_top}, {x(stretch.end_ns), plot_.frame_top}});
    }
  }
  plot_.curves.push_back(std::move(band));
}

void TimePlot::add_box(PlotBox box, std::uint64_t begin_ns, std::uint64_t end_ns) {
  if (end_ns < frame_.begin_ns) return;
  box.x = x(begin_ns);
  box.width = x(end_ns) - box.x;
  plot_.boxes.push_back(std::move(box));
}

void TimePlot::add_mark(std::uint64_t time_ns, std::vector<std::string> tooltip) {
  plot_.marks.push_back({Role::alarm, x(time_ns), std::move(tooltip)});
}

void TimePlot::label_peak(Role role, std::uint64_t time_ns, std::uint64_t bytes) {
  const double at = x(time_ns);
  plot_.label = PlotLabel{role,
                          {at, y(static_cast<double>(bytes))},
                          fmt::format("peak {} at {}", format_bytes(bytes), moment_text(frame_, time_ns)),
                          at < 0.2   ? PlotAlign::start
                          : at > 0.8 ? PlotAlign::end
                                     : PlotAlign::middle};
}

}  // namespace tidemark
