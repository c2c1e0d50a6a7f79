#include "analyze/timeline/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "query/words/attribution.h"
#include "query/words/recording_text.h"
#include "query/words/stack_text.h"
#include "report/plot/layers.h"
#include "report/plot/palette.h"
#include "report/plot/plots.h"
#include "report/plot/time_plot.h"

namespace tidemark {
namespace {

constexpr double kStrip = 16;
constexpr double kGapBelow = 4;
constexpr std::size_t kMaxSteps = 32;      // maximum number of steps with room for their numbers
constexpr std::size_t kPhaseCells = 400;   // of the width
constexpr double kWidthOfLetter = 0.0075;  // of a plot as wide as a page

constexpr Role role_of_phase(Phase phase) {
  return static_cast<Role>(static_cast<std::size_t>(Role::data_phase) + static_cast<std::size_t>(phase));
}
static_assert(role_of_phase(Phase::optimizer) == Role::optimizer_phase);

bool shows_phases(const TimelineBands& bands) {
  return bands.phases && !bands.phases->empty() && bands.phases->size() <= kPhaseCells;
}

// "12" if there is room for it.
std::vector<std::string> fitting_number(std::uint64_t number, double width) {
  std::string words = std::to_string(number);
  if ((static_cast<double>(words.size()) + 1) * kWidthOfLetter > width) return {};
  return {std::move(words)};
}

void add_steps(TimePlot& time, const std::vector<TimelineStep>& steps, std::uint64_t begin_ns,
               std::uint64_t duration_ns, double top) {
  const std::size_t stride = step_stride(steps.size(), kMaxSteps);
  bool even = true;
  for (std::size_t index = 0; index < steps.size(); index += stride, even = !even) {
    const TimelineStep& step = steps[index];
    const bool last = index + stride >= steps.size();
    const std::uint64_t end_ns = last ? duration_ns : steps[index + stride].begin_ns;
    PlotBox box;
    box.role = even ? Role::even_step : Role::odd_step;
    box.y = top;
    box.height = kStrip;
    std::string words = fmt::format("step {}", step.number);
    if (!last && steps[index + stride].number > step.number + 1) {
      words = fmt::format("steps {} to {}", step.number, steps[index + stride].number - 1);
    }
    box.tooltip = {last ? fmt::format("from step {} on", step.number) : std::move(words),
                   "begins at " + format_duration_ns(step.begin_ns)};
    const double width = static_cast<double>(end_ns - std::min(std::max(step.begin_ns, begin_ns), end_ns)) /
                         static_cast<double>(std::max(duration_ns, begin_ns + 1) - begin_ns);
    box.label = fitting_number(step.number, width);
    time.add_box(std::move(box), step.begin_ns, std::max(end_ns, step.begin_ns));
  }
}

// Neighbouring cells of one phase are one box.
void add_phases(TimePlot& time, const std::vector<std::optional<Phase>>& cells, std::uint64_t duration_ns, double top) {
  const double width = static_cast<double>(duration_ns) / static_cast<double>(cells.size());
  for (std::size_t first = 0; first < cells.size();) {
    std::size_t end = first + 1;
    while (end < cells.size() && cells[end] == cells[first]) ++end;
    if (cells[first]) {
      PlotBox box;
      box.role = role_of_phase(*cells[first]);
      box.y = top;
      box.height = kStrip;
      box.tooltip = {std::string(name_in(kPhaseNames, *cells[first]))};
      time.add_box(std::move(box), static_cast<std::uint64_t>(width * static_cast<double>(first)),
                   static_cast<std::uint64_t>(width * static_cast<double>(end)));
    }
    first = end;
  }
  for (const EnumName<Phase>& phase : kPhaseNames) {
    if (std::find(cells.begin(), cells.end(), phase.value) == cells.end()) continue;
    time.plot().legend.push_back({role_of_phase(phase.value), PlotKey::Sample::box, std::string(phase.name)});
  }
}

// Height of the strips; 0 if nothing is known.
double bands_height(const TimelineBands& bands) {
  return (bands.steps.empty() ? 0 : kStrip + kGapBelow) + (shows_phases(bands) ? kStrip + kGapBelow : 0);
}

// Adds them to a plot that has this height above its frame, with keys of the phases.
void add_bands(TimePlot& time, const Timeline& timeline, const TimeFrame& frame) {
  const TimelineBands& bands = timeline.bands;
  const std::uint64_t duration_ns = std::max<std::uint64_t>(timeline.recording.duration_ns, 1);
  double top = 0;
  if (!bands.steps.empty()) {
    time.plot().margin.push_back({top + kStrip / 2, "steps"});
    add_steps(time, bands.steps, frame.begin_ns, duration_ns, top);
    top += kStrip + kGapBelow;
  }
  if (shows_phases(bands)) {
    time.plot().margin.push_back({top + kStrip / 2, "phases"});
    add_phases(time, phase_cells(bands, duration_ns, kPhaseCells), duration_ns, top);
  } else if (!bands.phases || !bands.phases->empty()) {
    time.plot().remark = "Not drawn: phases, which change too often.";
  }
}

using plot_layout::kAreaOpacity;
using Sample = PlotKey::Sample;

std::uint64_t highest_bytes(const TimelineSeries& series) {
  return std::max({series.peak_allocated_bytes,
                   series.peak_reserved_bytes.value_or(series.peak_active_bytes.value_or(0)),
                   series.peak_driver_bytes.value_or(0)});
}

std::vector<std::string> hint_words(const TimelinePoint& point) {
  std::vector<std::string> words = {"allocated " + format_bytes(point.allocated_bytes)};
  if (point.active_bytes) words.push_back("active " + format_bytes(*point.active_bytes));
  if (point.reserved_bytes) words.push_back("reserved " + format_bytes(*point.reserved_bytes));
  if (point.driver_bytes) words.push_back("driver memory of libraries " + format_bytes(*point.driver_bytes));
  return words;
}

// Categories have fixed colours.
Role role_of(const TimelineLayers::Layer& layer, std::size_t index, std::optional<OwnerKind> by) {
  if (by == OwnerKind::category) return category_role(value_in(kCategoryNames, *layer.owner.name));
  return static_cast<Role>(static_cast<std::size_t>(Role::site1) + index);
}

/// A line at the GPU's total memory is drawn if the plot does not get much higher by it.
constexpr std::uint64_t kMaxHigher = 2;

std::optional<std::uint64_t> drawn_capacity(const TimelineSeries& series, std::uint64_t highest) {
  const bool fits = series.capacity_bytes && *series.capacity_bytes / kMaxHigher <= highest;
  return fits ? series.capacity_bytes : std::nullopt;
}

void add_capacity(TimePlot& time, const TimelineSeries& series, std::optional<std::uint64_t> capacity) {
  if (!capacity) return;
  time.add_curve(Role::alarm, 1, 0, series.points, [&](const TimelinePoint& /*point*/) { return capacity; });
  time.plot().legend.push_back({Role::alarm, Sample::line, "capacity " + format_bytes(*capacity)});
}

}  // namespace

Plot timeline_plot(const Timeline& timeline, const TimelineSeries& series, const TimeFrame& frame,
                   const TimelineLayers* split) {
  const std::vector<PlotLayer> layers = split == nullptr ? std::vector<PlotLayer>() : plot_layers(*split);
  const std::uint64_t highest = std::max(highest_bytes(series), highest_bytes(layers));
  const auto capacity = drawn_capacity(series, highest);
  TimePlot time(frame, std::max(highest, capacity.value_or(0)), bands_height(timeline.bands));
  Plot& plot = time.plot();
  plot.description = fmt::format("Memory of {} over time: peak allocated {} {}", to_string(series.device),
                                 format_bytes(series.peak_allocated_bytes), at_text(series.peak_allocated_at_ns));
  if (!timeline.pauses.empty()) {
    time.add_band(Role::quiet, kAreaOpacity, timeline.pauses);
    plot.legend.push_back({Role::quiet, Sample::area, "recording paused"});
  }
  add_layers(time, series.points, layers);
  const bool layered = !layers.empty();
  time.add_curve(layered ? Role::ink : Role::allocated, layered ? 0.7 : 1, layered ? 0 : kAreaOpacity, series.points,
                 [](const TimelinePoint& point) { return point.allocated_bytes; });
  if (!layered) plot.legend.push_back({Role::allocated, Sample::area, "allocated"});
  if (series.active_differs()) {  // otherwise it would hide allocated
    time.add_curve(Role::active, 1.4, 0, series.points, [](const TimelinePoint& point) { return point.active_bytes; });
    plot.legend.push_back({Role::active, Sample::line, "active: allocated, or freed and still in use by a stream"});
  }
  if (series.peak_reserved_bytes) {
    time.add_curve(Role::reserved, 1.8, 0, series.points,
                   [](const TimelinePoint& point) { return point.reserved_bytes; });
    plot.legend.push_back({Role::reserved, Sample::line, "reserved"});
  }
  if (series.peak_driver_at_ns) {
    time.add_curve(Role::driver, 1.4, 0, series.points, [](const TimelinePoint& point) { return point.driver_bytes; });
    plot.legend.push_back({Role::driver, Sample::line, "driver memory of libraries, outside PyTorch's allocator"});
  }
  add_capacity(time, series, capacity);
  time.add_hints(series.points, [&](std::size_t index) {
    std::vector<std::string> words = hint_words(series.points[index]);
    for (std::string& layer : layer_words(layers, index)) words.push_back(std::move(layer));
    return words;
  });
  for (const TimelineOutOfMemory& failure : timeline.out_of_memory) {
    if (failure.device != series.device) continue;
    time.add_mark(failure.time_ns, {fmt::format("out of memory {}: {} requested", at_text(failure.time_ns),
                                                format_bytes(failure.requested_bytes))});
  }
  if (!plot.marks.empty()) plot.legend.push_back({Role::alarm, Sample::line, "out of memory"});
  add_bands(time, timeline, frame);
  if (series.peak_allocated_at_ns) {
    time.label_peak(layered ? Role::ink : Role::allocated, *series.peak_allocated_at_ns, series.peak_allocated_bytes);
  }
  return time.take();
}

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
  const std::uint64_t highest = std::max(series.peak_allocated_bytes, highest_bytes(layers));
  const auto capacity = drawn_capacity(series, highest);
  TimePlot time(frame, std::max(highest, capacity.value_or(0)), bands_height(timeline.bands));
  Plot& plot = time.plot();
  plot.description = fmt::format("Allocated memory of {} over time, by {}", to_string(series.device),
                                 split.by ? name_in(kOwnerKindNames, *split.by) : "call site");
  add_layers(time, series.points, layers);
  add_capacity(time, series, capacity);
  // Allocations that are too short for a filled area are visible as a line.
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
  add_bands(time, timeline, frame);
  if (series.peak_allocated_at_ns) {
    time.label_peak(Role::ink, *series.peak_allocated_at_ns, series.peak_allocated_bytes);
  }
  return time.take();
}

}  // namespace tidemark
