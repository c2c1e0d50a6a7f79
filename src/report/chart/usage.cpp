#include <fmt/format.h>

#include <algorithm>

#include "query/words/printable.h"
#include "query/words/risks.h"
#include "report/chart/chart.h"
#include "report/chart/picture.h"
#include "report/plot/plots.h"

namespace tidemark {

Result<std::string> draw_usage(const MachineState& state, ChartFormat format, UsageTimes times) {
  const auto has_samples = [](const WatchedDevice& device) { return !device.used.empty(); };
  const auto panels =
      static_cast<std::size_t>(std::count_if(state.devices.begin(), state.devices.end(), has_samples)) + 1;
  if (auto checked = check_panel_count(panels); !checked) return checked.error();
  Picture picture{"Used memory over time",
                  "",
                  {},
                  "No samples.",
                  times == UsageTimes::of_day ? "time of day, UTC" : "time since watching began"};
  std::uint64_t duration_ns = 1;
  for (const WatchedDevice& device : state.devices) {
    if (has_samples(device)) duration_ns = std::max(duration_ns, device.used.end_ns());
  }
  TimeFrame frame{duration_ns, panels <= 2 ? 300.0 : panels <= 5 ? 190.0 : 110.0};
  if (times == UsageTimes::of_day) frame.begin_wall_ns = state.wall_ns(0);
  for (const WatchedDevice& device : state.devices) {
    if (!has_samples(device)) continue;
    picture.panels.push_back({shown(watched_title(device, state)), usage_plot(device, frame)});
  }
  if (!picture.panels.empty()) {
    picture.panels.push_back({"Highest use of each device, in percent of its total", usage_heat_map(state, frame)});
  }
  return draw_picture(picture, format);
}

}  // namespace tidemark
