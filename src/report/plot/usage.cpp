#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/units.h"
#include "query/words/monitors.h"
#include "query/words/printable.h"
#include "report/plot/plots.h"
#include "report/plot/time_plot.h"

namespace tidemark {
namespace {

using Sample = PlotKey::Sample;

constexpr std::size_t kHeatColumns = 120;
constexpr double kHeatRow = 24;
constexpr double kHeatCell = 22;
constexpr double kHeatBelow = 26;  // room for the times

struct HeatStep {
  double below_percent;
  Role role;
  const char* words;
};
constexpr std::array<HeatStep, 6> kHeat = {{{25, Role::heat1, "below 25%"},
                                            {50, Role::heat2, "25 to 50%"},
                                            {70, Role::heat3, "50 to 70%"},
                                            {85, Role::heat4, "70 to 85%"},
                                            {95, Role::heat5, "85 to 95%"},
                                            {1e9, Role::heat6, "95% and above"}}};

Role heat_of(double percent) {
  const auto step = std::find_if(kHeat.begin(), kHeat.end(),
                                 [percent](const HeatStep& known) { return percent < known.below_percent; });
  return step == kHeat.end() ? kHeat.back().role : step->role;
}

// The point of a curve at a time; a joined point is two, at its begin and its end.
struct UsageAt {
  std::uint64_t time_ns = 0;
  const WatchedUsagePoint* point = nullptr;
};

std::vector<UsageAt> usage_over_time(const WatchedUsage& used) {
  std::vector<UsageAt> points;
  points.reserve(used.points().size());
  for (const WatchedUsagePoint& point : used.points()) points.push_back({point.begin_ns, &point});
  points.push_back({used.end_ns(), &used.points().back()});
  return points;
}

// The maximum of a stretch; without a reading, the value of the reading before it.
std::vector<std::optional<std::uint64_t>> highest_by_column(const WatchedDevice& device, std::uint64_t duration_ns) {
  std::vector<std::optional<std::uint64_t>> columns(kHeatColumns);
  const auto column_of = [&](std::uint64_t time_ns) {
    const double share = static_cast<double>(time_ns) / static_cast<double>(std::max<std::uint64_t>(duration_ns, 1));
    return std::min(kHeatColumns - 1, static_cast<std::size_t>(share * static_cast<double>(kHeatColumns)));
  };
  for (const WatchedUsagePoint& point : device.used.points()) {
    for (std::size_t column = column_of(point.begin_ns); column <= column_of(point.end_ns); ++column) {
      columns[column] = std::max(columns[column].value_or(0), point.high_bytes);
    }
  }
  if (device.used.empty()) return columns;
  for (std::size_t column = column_of(device.used.begin_ns()) + 1; column < column_of(device.used.end_ns()); ++column) {
    if (!columns[column]) columns[column] = columns[column - 1];
  }
  return columns;
}

void add_heat_row(Plot& plot, const WatchedDevice& device, double top, std::uint64_t duration_ns) {
  const auto columns = highest_by_column(device, duration_ns);
  const auto total = device.info.total_bytes;
  constexpr double kColumnWidth = 1.0 / static_cast<double>(kHeatColumns);
  for (std::size_t column = 0; column < columns.size(); ++column) {
    if (!columns[column] || total.value_or(0) == 0) continue;
    const double percent = static_cast<double>(*columns[column]) / static_cast<double>(*total) * 100;
    plot.boxes.push_back(
        {heat_of(percent),
         static_cast<double>(column) * kColumnWidth,
         kColumnWidth,
         top,
         kHeatCell,
         {fmt::format("{}: {:.1f}%, {}", short_title(device), percent, format_bytes(*columns[column]))},
         {}});
  }
}

}  // namespace

Plot usage_plot(const WatchedDevice& device, const TimeFrame& frame) {
  const std::vector<UsageAt> points = usage_over_time(device.used);
  const auto total = device.info.total_bytes;
  TimePlot time(frame, std::max(device.used.peak_bytes(), total.value_or(0)));
  Plot& plot = time.plot();
  plot.description = fmt::format("Used memory of {} over time: peak {} at {}", short_title(device),
                                 format_bytes(device.used.peak_bytes()), moment_text(frame, device.used.peak_at_ns()));
  time.add_curve(Role::allocated, 1.2, plot_layout::kAreaOpacity, points,
                 [](const UsageAt& at) { return std::optional(at.point->high_bytes); });
  plot.legend.push_back({Role::allocated, Sample::area, "used"});
  if (total) {
    time.add_curve(Role::alarm, 1.2, 0, points, [&](const UsageAt&) { return total; });
    plot.legend.push_back({Role::alarm, Sample::line, "total"});
  }
  time.add_hints(points, [&](std::size_t index) {
    return std::vector<std::string>{"used " + format_bytes(points[index].point->high_bytes)};
  });
  time.label_peak(Role::allocated, device.used.peak_at_ns(), device.used.peak_bytes());
  return time.take();
}

Plot usage_heat_map(const MachineState& state, const TimeFrame& frame) {
  const std::uint64_t duration_ns = std::max<std::uint64_t>(frame.duration_ns, 1);
  Plot plot;
  plot.description = "How much of each device was used over time";
  double top = 0;
  for (const WatchedDevice& device : state.devices) {
    // By their keys, because there is no room for "GPU 0 instance 1".
    plot.margin.push_back({top + kHeatCell / 2, device.is_host ? "host" : shown("GPU " + device.key, 16)});
    add_heat_row(plot, device, top, duration_ns);
    top += kHeatRow;
  }
  plot.frame_height = top;
  plot.height = top + kHeatBelow;
  for (const Tick& tick : ticks_of(frame)) {
    const double at = tick.value / static_cast<double>(duration_ns);
    const PlotAlign align = at > 0.96 ? PlotAlign::end : at < 0.02 ? PlotAlign::start : PlotAlign::middle;
    plot.ticks.push_back({at, tick.label, align});
  }
  for (const HeatStep& step : kHeat) plot.legend.push_back({step.role, Sample::box, step.words});
  return plot;
}

}  // namespace tidemark
