#include <fmt/format.h>

#include <algorithm>

#include "analyze/timeline/timeline.h"
#include "base/units.h"
#include "query/words/attribution.h"
#include "query/words/stack_text.h"
#include "report/plot/bands.h"
#include "report/plot/category_role.h"
#include "report/plot/layers.h"
#include "report/plot/plots.h"

namespace tidemark {
namespace {

// Categories have colours of their own.
Role role_of(const TimelineLayers::Layer& layer, std::size_t index, std::optional<OwnerKind> by) {
  if (by == OwnerKind::category) return category_role(value_in(kCategoryNames, *layer.owner.name));
  return static_cast<Role>(static_cast<std::size_t>(Role::site1) + index);
}

}  // namespace

std::vector<PlotLayer> plot_layers(const TimelineLayers& split) {
  LayerStack stack(split.other.size());
  std::vector<std::uint64_t> other = split.other;
  for (std::size_t layer_index = 0; layer_index < split.layers.size(); ++layer_index) {
    const TimelineLayers::Layer& layer = split.layers[layer_index];
    if (layer_index < kMaxLayers || split.by == OwnerKind::category) {
      stack.add(role_of(layer, layer_index, split.by),
                split.by ? owner_text(layer.owner) : stack_text(layer.stack, kStackInSentence),
                [&](std::size_t index) { return layer.bytes[index]; });
    } else {
      for (std::size_t index = 0; index < other.size(); ++index) other[index] += layer.bytes[index];
    }
  }
  stack.add(Role::other_sites, split.by ? "others" : "other call sites",
            [&](std::size_t index) { return other[index]; });
  stack.add(Role::unrecorded, "not recorded", [&](std::size_t index) { return split.unrecorded[index]; });
  return stack.take();
}

Plot layers_plot(const Timeline& timeline, const TimelineSeries& series, const TimelineLayers& split,
                 const TimeFrame& frame) {
  const std::vector<PlotLayer> layers = plot_layers(split);
  TimePlot time(frame, std::max(series.peak_allocated_bytes, highest_bytes(layers)), bands_height(timeline.bands));
  Plot& plot = time.plot();
  plot.description = fmt::format("Allocated memory of {} over time, by {}", to_string(series.device),
                                 split.by ? name_in(kOwnerKindNames, *split.by) : "call site");
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
  add_bands(time, timeline);
  if (series.peak_allocated_at_ns) {
    time.label_peak(Role::ink, *series.peak_allocated_at_ns, series.peak_allocated_bytes);
  }
  return time.take();
}

}  // namespace tidemark
