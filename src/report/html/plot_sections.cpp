// The sections of a page that draw: memory over time, flame graph, segment map.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "report/html/markup.h"
#include "report/html/sections.h"
#include "report/html/svg_plot.h"
#include "report/plot/plots.h"
#include "report/words/recording.h"

namespace tidemark::html {

void add_timeline(std::string& out, const PageContents& contents, const std::string& id) {
  const auto has_memory = [](const TimelineSeries& series) { return series.peak_allocated_at_ns.has_value(); };
  if (std::none_of(contents.timeline.series.begin(), contents.timeline.series.end(), has_memory)) return;
  open_section(out, id + "timeline", "Memory over time",
               "Time since the recording began. Every peak is drawn at its exact height, however short it was.");
  for (const TimelineSeries& series : contents.timeline.series) {
    if (!has_memory(series)) continue;
    add_device_heading(out, series.device);
    add_plot(out, timeline_plot(contents.timeline, series, {contents.timeline.recording.duration_ns}), "time");
  }
  out += kSectionEnd;
}

void add_flame_graph(std::string& out, const PageContents& contents, const std::string& id) {
  const auto draws = [](const TreeSection& section) { return !section.nodes.empty(); };
  if (std::none_of(contents.tree.sections.begin(), contents.tree.sections.end(), draws)) return;
  open_section(
      out, id + "calls", "Call stacks at the peak",
      "The same memory as a flame graph: callers above, what they call below; the wider a box, the more memory "
      "was allocated in it. The x-axis is not time.");
  for (const TreeSection& section : contents.tree.sections) {
    if (!draws(section)) continue;
    add_device_heading(out, section.device,
                       fmt::format("{} allocated {}", format_bytes(section.allocated_bytes), at_text(section.at_ns)));
    add_plot(out, flame_graph_plot(section), "flame");
  }
  out += kSectionEnd;
}

void add_segment_map(std::string& out, const PageContents& contents, const std::string& id) {
  const auto draws = [](const PageMap& map) { return !map.segments.empty(); };
  if (std::none_of(contents.maps.begin(), contents.maps.end(), draws)) return;
  open_section(
      out, id + "segments", "Segment map",
      "The segments that the allocator reserved from the driver, at the same peak: largest first, to scale, small "
      "ones sharing a row. An allocation needs one free block that is large enough.");
  for (std::size_t index = 0; index < contents.maps.size(); ++index) {
    const PageMap& map = contents.maps[index];
    if (!draws(map)) continue;
    const FragmentationDevice& device = contents.fragmentation.devices[index];
    std::string detail;
    if (device.at_moment) {
      detail = fmt::format("{} reserved at {}, of which {} free", bytes_text(device.at_moment->reserved),
                           format_duration_ns(device.at_moment->time_ns), bytes_text(device.at_moment->free));
    }
    add_device_heading(out, device.totals.device, detail);
    add_plot(out, segment_plot({map.segments, map.other_segments, map.other_bytes, &contents.map_stacks}), "map");
  }
  out += kSectionEnd;
}

}  // namespace tidemark::html
