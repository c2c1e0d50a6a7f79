#include "report/chart/chart.h"

#include <algorithm>
#include <vector>

#include "report/chart/page.h"
#include "report/chart/panel.h"
#include "report/words/recording.h"

namespace tidemark {
namespace {

std::vector<ChartPanel> panels_of(std::span<const Timeline> timelines) {
  std::vector<ChartPanel> panels;
  for (const Timeline& timeline : timelines) {
    for (const TimelineSeries& series : timeline.series) {
      ChartPanel panel;
      panel.series = &series;
      panel.duration_ns = timeline.recording.duration_ns;
      panel.title = to_string(series.device);
      if (timelines.size() > 1) panel.title += ", " + recording_title(timeline.recording);
      for (const TimelineOutOfMemory& failure : timeline.out_of_memory) {
        if (failure.device == series.device) panel.out_of_memory_ns.push_back(failure.time_ns);
      }
      panels.push_back(std::move(panel));
    }
  }
  return panels;
}

}  // namespace

Result<std::string> draw_chart(std::span<const Timeline> timelines, ChartFormat format) {
  const std::vector<ChartPanel> panels = panels_of(timelines);
  std::uint64_t duration_ns = 1;
  for (const ChartPanel& panel : panels) duration_ns = std::max(duration_ns, panel.duration_ns);
  ChartPage page;
  page.title = "Memory over time";
  page.what = timelines.empty() ? "nothing recorded" : recordings_words(timelines.front().recording, timelines.size());
  page.panels = panels.size();
  page.nothing = "No events.";
  return draw_page(page, format, [&](Canvas& canvas, std::size_t panel, const Box& box) {
    draw_panel(canvas, panels[panel], box, duration_ns, panel + 1 == panels.size());
  });
}

}  // namespace tidemark
