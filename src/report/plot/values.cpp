#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "report/plot/axis.h"
#include "report/plot/plots.h"

namespace tidemark {
namespace {

constexpr double kValuesAbove = 10;  // the frame
constexpr double kValuesBelow = 26;  // it: room for the times

}  // namespace

Plot value_plot(std::span<const HistoryMoment> points, const TimeFrame& frame,
                const std::optional<ShownNumbers>& shown) {
  double lowest = shown ? shown->lowest : points.front().lowest;
  double highest = shown ? shown->highest : points.front().highest;
  for (const HistoryMoment& point : points) {
    lowest = std::min(lowest, point.lowest);
    highest = std::max(highest, point.highest);
  }
  const std::vector<Tick> ticks = number_ticks(lowest, highest);
  const double bottom = ticks.front().value;
  const double span = ticks.back().value - bottom;
  const double duration_ns = static_cast<double>(std::max<std::uint64_t>(frame.duration_ns, 1));
  const auto x = [&](std::uint64_t time_ns) { return std::min(1.0, static_cast<double>(time_ns) / duration_ns); };
  const auto y = [&](double value) {
    return kValuesAbove + frame.height * (1 - std::clamp((value - bottom) / span, 0.0, 1.0));
  };

  Plot plot;
  plot.description = fmt::format("Values over time, from {:g} to {:g}", lowest, highest);
  plot.frame_top = kValuesAbove;
  plot.frame_height = frame.height;
  plot.height = kValuesAbove + frame.height + kValuesBelow;
  plot.grid = true;
  for (const Tick& tick : ticks) plot.margin.push_back({y(tick.value), tick.label});
  for (const Tick& tick : time_ticks(frame.duration_ns)) {
    const double at = tick.value / duration_ns;
    const PlotAlign align = at > 0.96 ? PlotAlign::end : at < 0.02 ? PlotAlign::start : PlotAlign::middle;
    plot.ticks.push_back({at, frame.names_times ? tick.label : std::string(), align});
  }
  PlotCurve means{Role::allocated, 1.4, 0, {{}}, true};
  for (const HistoryMoment& point : points) {
    const double left = x(point.begin_ns);
    const double width = std::max(x(point.end_ns) - left, 0.001);
    // A run's mean stands in the middle of its time.
    means.runs.front().push_back({std::min(1.0, left + width / 2), y(point.mean)});
    if (point.highest > point.lowest) {
      PlotCurve range{Role::quiet, 0.6, 0, {{}}, true};
      range.runs.front() = {{left + width / 2, y(point.lowest)}, {left + width / 2, y(point.highest)}};
      plot.curves.push_back(std::move(range));
    }
    plot.hints.push_back(
        {left,
         width,
         {format_duration_ns(point.begin_ns), fmt::format("mean {:.6g}, {:.6g} to {:.6g}, {} values", point.mean,
                                                          point.lowest, point.highest, format_count(point.count))}});
  }
  if (points.size() == 1) means.runs.front().push_back({x(points.front().end_ns), y(points.front().mean)});
  plot.curves.push_back(std::move(means));
  return plot;
}

}  // namespace tidemark
