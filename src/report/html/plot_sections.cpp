// The sections of a page that draw: memory over time, flame graph, segment map.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "analyze/common/stack_names.h"
#include "base/units.h"
#include "query/words/recording_text.h"
#include "report/html/markup.h"
#include "report/html/sections.h"
#include "report/plot/plots.h"

namespace tidemark::html {

namespace {

// Layers of call sites without stacks are not informative.
bool says_something(const TimelineLayers& split) {
  return std::any_of(split.layers.begin(), split.layers.end(),
                     [](const TimelineLayers::Layer& layer) { return !layer.stack.frames.empty(); });
}

}  // namespace

void add_timeline(std::string& out, const PageContents& contents, const std::string& id) {
  const auto has_memory = [](const TimelineSeries& series) { return series.peak_allocated_at_ns.has_value(); };
  if (std::none_of(contents.timeline.series.begin(), contents.timeline.series.end(), has_memory)) return;
  open_section(out, id + "timeline", "Memory over time",
               "Time since the recording began. Every peak is drawn at its exact height, however short it was.");
  for (const TimelineSeries& series : contents.timeline.series) {
    if (!has_memory(series)) continue;
    add_device_heading(out, series.device);
    const TimeFrame frame = {contents.timeline.recording.duration_ns};
    const auto by_owner = std::find_if(series.splits.begin(), series.splits.end(),
                                       [](const TimelineLayers& split) { return split.by.has_value(); });
    const TimelineLayers* const layers = by_owner == series.splits.end() ? nullptr : &*by_owner;
    add_plot(out, timeline_plot(contents.timeline, series, frame, layers), layers == nullptr ? "time" : "time owners");
    for (const TimelineLayers& split : series.splits) {
      if (split.by || !says_something(split)) continue;
      add_device_heading(out, series.device, "allocated by the call sites that held most at the peak");
      add_plot(out, layers_plot(contents.timeline, series, split, frame), "time sites");
    }
  }
  if (const auto& host = contents.timeline.host) {
    out += "<h4>host <small>resident memory of the process, sampled</small></h4>\n";
    add_plot(out, host_plot(*host, {std::max(contents.timeline.recording.duration_ns, host->end_ns())}), "time");
  }
  out += kSectionEnd;
}

namespace {

// Both graphs of a device are on the page, and the style sheet shows one of them.
void add_flame_graphs(std::string& out, const TreeSection& all, const TreeSection& project, const std::string& id) {
  const bool differ =
      !project.nodes.empty() && !std::all_of(all.nodes.begin(), all.nodes.end(),
                                             [](const TreeNode& node) { return is_project_code(node.frame); });
  out += "<div class=\"calls\">\n";
  if (differ) {
    fmt::format_to(std::back_inserter(out),
                   "<input type=\"checkbox\" id=\"{0}\"> <label for=\"{0}\">Hide frames of libraries</label>\n", id);
  }
  out += "<div class=\"all\">\n";
  add_plot(out, flame_graph_plot(all), "flame");
  out += "</div>\n";
  if (differ) {
    out += "<div class=\"project\">\n";
    add_plot(out, flame_graph_plot(project), "flame");
    out += "</div>\n";
  }
  out += "</div>\n";
}

}  // namespace

void add_flame_graph(std::string& out, const PageContents& contents, const std::string& id) {
  const auto draws = [](const TreeSection& section) { return !section.nodes.empty(); };
  if (std::none_of(contents.tree.sections.begin(), contents.tree.sections.end(), draws)) return;
  open_section(
      out, id + "calls", "Call stacks at the peak",
      "The same memory as a flame graph: callers above, what they call below; the wider a box, the more memory "
      "was allocated in it. The x-axis is not time.");
  for (std::size_t index = 0; index < contents.tree.sections.size(); ++index) {
    const TreeSection& section = contents.tree.sections[index];
    if (!draws(section)) continue;
    add_device_heading(out, section.device,
                       fmt::format("{} allocated {}", format_bytes(section.allocated_bytes), at_text(section.at_ns)));
    add_flame_graphs(out, section, contents.project_tree.sections[index], fmt::format("{}calls-{}", id, index));
  }
  out += kSectionEnd;
}

void add_segment_map(std::string& out, const PageContents& contents, const std::string& id) {
  const auto draws = [](const PageMap& map) { return !map.segments.empty(); };
  if (std::none_of(contents.maps.begin(), contents.maps.end(), draws)) return;
  open_section(
      out, id + "segments", "Segment map",
      "The segments that the allocator reserved from the driver, at the same peak: largest first, to scale. Those that "
      "look alike have one row, with their number and as many of them as fit; small ones share a row. An allocation "
      "needs one free block that is large enough.");
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
