#include <fmt/format.h>

#include <algorithm>

#include "analyze/call_site_layers.h"
#include "base/units.h"
#include "report/plot/layers.h"
#include "report/plot/plots.h"
#include "report/words/stack_text.h"

namespace tidemark {
namespace {

std::vector<PlotLayer> site_layers(const CallSiteLayers& layers) {
  LayerStack stack(layers.other.size());
  std::vector<std::uint64_t> other = layers.other;
  for (std::size_t site = 0; site < layers.call_sites.size(); ++site) {
    const CallSiteLayers::Layer& layer = layers.call_sites[site];
    if (site < kCallSiteLayers) {
      const auto role = static_cast<Role>(static_cast<std::size_t>(Role::site1) + site);
      stack.add(role, stack_text(layer.stack, kStackInSentence), [&](std::size_t index) { return layer.bytes[index]; });
    } else {
      for (std::size_t index = 0; index < other.size(); ++index) other[index] += layer.bytes[index];
    }
  }
  stack.add(Role::other_sites, "other call sites", [&](std::size_t index) { return other[index]; });
  stack.add(Role::unrecorded, "not recorded", [&](std::size_t index) { return layers.unrecorded[index]; });
  return stack.take();
}

}  // namespace

Plot call_site_plot(const Timeline& timeline, const TimelineSeries& series, const TimeFrame& frame) {
  const std::vector<PlotLayer> layers = site_layers(*series.by_call_site);
  TimePlot time(frame, std::max(series.peak_allocated_bytes, highest_bytes(layers)));
  Plot& plot = time.plot();
  plot.description = fmt::format("Allocated memory of {} over time, by call site", to_string(series.device));
  add_layers(time, series.points, layers);
  // What is too narrow for a filled area shows as a line.
  time.add_curve(Role::ink, 0.7, 0, series.points, [](const TimelinePoint& point) { return point.allocated_bytes; });
  time.add_hints(series.points, [&](std::size_t index) {
    std::vector<std::string> words = layer_words(layers, index);
    words.insert(words.begin(), "allocated " + format_bytes(series.points[index].allocated_bytes));
    return words;
  });
  if (!timeline.pauses.empty()) {
    time.add_band(Role::quiet, plot_layout::kAreaOpacity, timeline.pauses);
    plot.legend.push_back({Role::quiet, PlotKey::Sample::area, "recording paused"});
  }
  if (series.peak_allocated_at_ns) {
    time.label_peak(Role::ink, *series.peak_allocated_at_ns, series.peak_allocated_bytes);
  }
  return time.take();
}

}  // namespace tidemark
