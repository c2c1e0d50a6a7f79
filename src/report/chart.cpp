#include "report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/units.h"
#include "report/chart_canvas.h"
#include "report/chart_panel.h"
#include "report/chart_surface.h"
#include "report/printable.h"
#include "report/text.h"

namespace tidemark {
namespace {

constexpr double kWidth = 1200;
constexpr double kHeader = 84;
constexpr double kFooter = 44;
constexpr double kLeft = 96;
constexpr double kRight = 36;

std::vector<ChartPanel> panels_of(std::span<const Timeline> timelines) {
  std::vector<ChartPanel> panels;
  for (const Timeline& timeline : timelines) {
    for (const TimelineSeries& series : timeline.series) {
      ChartPanel panel;
      panel.series = &series;
      panel.duration_ns = timeline.recording.duration_ns;
      panel.title = to_string(series.device);
      if (timelines.size() > 1) panel.title += "  \xC2\xB7  " + recording_title(timeline.recording);
      for (const TimelineOutOfMemory& failure : timeline.out_of_memory) {
        if (failure.device == series.device) panel.out_of_memory_ns.push_back(failure.time_ns);
      }
      panels.push_back(std::move(panel));
    }
  }
  return panels;
}

void draw_header(Canvas& canvas, std::span<const Timeline> timelines) {
  canvas.text("Memory over time", kLeft, 36, {22, true, colours::kInk});
  std::string what = "nothing recorded";
  if (!timelines.empty()) {
    const ProcessInfo& process = timelines.front().recording.process;
    what = printable(process.command_line);
    if (timelines.size() > 1) what += fmt::format("  ({} recordings)", timelines.size());
  }
  canvas.text(canvas.fit(what, kWidth - kLeft - kRight, {13, false, colours::kQuiet}), kLeft, 58,
              {13, false, colours::kQuiet});
}

void draw(Canvas& canvas, std::span<const Timeline> timelines, const std::vector<ChartPanel>& panels,
          double panel_height) {
  draw_header(canvas, timelines);
  std::uint64_t duration_ns = 1;
  for (const ChartPanel& panel : panels) duration_ns = std::max(duration_ns, panel.duration_ns);
  double top = kHeader;
  for (std::size_t index = 0; index < panels.size(); ++index) {
    const bool last = index + 1 == panels.size();
    draw_panel(canvas, panels[index], {kLeft, top, kWidth - kLeft - kRight, panel_height}, duration_ns, last);
    top += panel_height;
  }
  if (panels.empty()) canvas.text("No events.", kLeft, kHeader + 40, {15, false, colours::kInk});
}

}  // namespace

Result<std::string> draw_chart(std::span<const Timeline> timelines, ChartFormat format) {
  const std::vector<ChartPanel> panels = panels_of(timelines);
  if (panels.size() > kMaxPanels) {
    return Error{fmt::format("a chart of {} devices would be unreadable; draw at most {} at a time (--device)",
                             panels.size(), kMaxPanels)};
  }
  // A few panels get room; many share what is still legible.
  const double panel_height = panels.size() <= 1 ? 420 : panels.size() <= 4 ? 280 : 190;
  const double height = kHeader + panel_height * static_cast<double>(std::max<std::size_t>(panels.size(), 1)) + kFooter;
  return draw_picture(kWidth, height, format, [&](Canvas& canvas) { draw(canvas, timelines, panels, panel_height); });
}

}  // namespace tidemark
