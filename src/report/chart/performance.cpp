#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "query/words/printable.h"
#include "query/words/risks.h"
#include "report/chart/chart.h"
#include "report/chart/picture.h"
#include "report/plot/plots.h"

namespace tidemark {
namespace {

constexpr std::size_t kMaxDrawnDevices = 16;

struct DrawnValues {
  std::string title;
  const ValueHistory* history;
  std::optional<ShownNumbers> shown = {};
};
constexpr ShownNumbers kPercent{0, 100};

std::vector<DrawnValues> drawn_values(const PerformanceReport& report) {
  std::vector<DrawnValues> drawn;
  for (const MetricReport& metric : report.metrics) {
    if (drawn.size() < kMaxDrawnMetrics) drawn.push_back({metric.name, &metric.history});
  }
  drawn.push_back({"step, in seconds", &report.step_history});
  drawn.push_back({"processors, in percent", &report.system.cpu.history, kPercent});
  drawn.push_back({"host memory, in percent", &report.system.memory.history, kPercent});
  std::erase_if(drawn, [](const DrawnValues& values) { return values.history->points().empty(); });
  return drawn;
}

}  // namespace

Result<std::string> draw_performance(const PerformanceReport& report, ChartFormat format) {
  Picture picture{"Training over time", "", {}, "Nothing was logged.", "time since the monitor was made"};
  const std::vector<DrawnValues> drawn = drawn_values(report);
  const std::uint64_t duration_ns = std::max<std::uint64_t>(report.now_ns, 1);
  const double height = drawn.size() <= 3 ? 190 : 110;
  for (const DrawnValues& values : drawn) {
    picture.panels.push_back(
        {shown(values.title), value_plot(values.history->points(), {duration_ns, height, true}, values.shown)});
  }
  if (report.metrics.size() > kMaxDrawnMetrics) {
    picture.panels.back().plot.remark =
        fmt::format("Not drawn: {} further metrics.", report.metrics.size() - kMaxDrawnMetrics);
  }
  std::size_t devices = 0;
  if (report.machine) {
    for (const WatchedDevice& device : report.machine->devices) {
      if (device.is_host || device.used.empty() || ++devices > kMaxDrawnDevices) continue;
      picture.panels.push_back({shown(watched_title(device, *report.machine)),
                                usage_plot(device, {std::max(duration_ns, device.used.end_ns()), height, true})});
    }
  }
  return draw_picture(picture, format);
}

}  // namespace tidemark
