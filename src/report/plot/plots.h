// Plots of results, for pictures and for the page.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "analyze/common/stack_names.h"
#include "analyze/fragmentation/segment_map.h"
#include "analyze/ledger/ledger.h"
#include "analyze/sweep/sweep.h"
#include "analyze/timeline/host_timeline.h"
#include "analyze/timeline/timeline.h"
#include "analyze/usage/breakdown.h"
#include "analyze/usage/tree.h"
#include "inprocess/performance/metric_table.h"
#include "monitor/machine_state.h"
#include "report/plot/plot.h"

namespace tidemark {

/// The frame of a plot over time.
struct TimeFrame {
  std::uint64_t duration_ns = 0;  ///< where the x-axis ends: its length if it begins at 0
  double height = 250;
  bool names_times = true;  ///< labels at the x-axis
  /// When the frame begins, since 1970: the axis then shows times of day, UTC. nullopt: times since the beginning.
  std::optional<std::uint64_t> begin_wall_ns = {};
  std::uint64_t begin_ns = 0;  ///< where the x-axis begins, before duration_ns, where it ends
};

/// Allocated bytes as an area, reserved bytes as a line (active ones too, if they differ, and the driver's, if
/// libraries held some), the peak, the failed requests of `timeline` on the series' device, and its steps and phases.
/// The area has the layers of `split`, one of the series' own; null: as a whole.
[[nodiscard]] Plot timeline_plot(const Timeline& timeline, const TimelineSeries& series, const TimeFrame& frame,
                                 const TimelineLayers* split = nullptr);

/// RSS as an area, in layers by kind of page if known; PSS as a line, the peak. The frame spans all samples.
[[nodiscard]] Plot host_plot(const HostTimeline& host, const TimeFrame& frame);
/// Allocated bytes in layers by call site or owner, with steps and phases; `split` is one of the series' own.
[[nodiscard]] Plot layers_plot(const Timeline& timeline, const TimelineSeries& series, const TimelineLayers& split,
                               const TimeFrame& frame);

/// A bar for each row of the device's first group, and one for all, with the parts of each category.
[[nodiscard]] Plot breakdown_plot(const BreakdownDevice& device);

/// Owners in layers, with the used memory reported by the driver. The device has points.
[[nodiscard]] Plot ledger_plot(const LedgerDevice& device, const TimeFrame& frame);

/// The host's memory by owner in layers, used memory, and killed processes. The host has points.
[[nodiscard]] Plot host_ledger_plot(const HostLedger& host, const TimeFrame& frame);

/// One bar for the ledger at one time, as wide as the used or the known memory, whichever is more. Used bytes are
/// known.
[[nodiscard]] Plot ledger_bar(const LedgerDevice& device);

/// Input of segment_plot(). Everything must outlive only the call.
struct SegmentPlotInput {
  std::span<const MapSegment> segments;
  std::uint64_t other_segments = 0;  ///< segments that are not among these
  std::uint64_t other_bytes = 0;
  const std::map<StackId, NamedStack>* stacks = nullptr;  ///< for tooltips; may be null
};

/// Segments in rows, to scale, with their blocks.
[[nodiscard]] Plot segment_plot(const SegmentPlotInput& input);

/// Peak allocated bytes over the values of one numeric argument (an index into Sweep::arguments) on the first GPU: a
/// line for each combination of the other arguments, with a square at each measured value.
[[nodiscard]] Plot sweep_curves_plot(const Sweep& sweep, std::size_t argument);
/// Configurations that fit on one GPU: a column for each value of `across`, a row for each combination of the other
/// arguments.
[[nodiscard]] Plot sweep_fits_plot(const Sweep& sweep, std::size_t gpu, std::size_t across);

/// Callers above their callees; the width is the memory allocated in them.
[[nodiscard]] Plot flame_graph_plot(const TreeSection& section);

/// Used memory of a device over time: the maximum of each moment as a line, with an area down to the minimum, and the
/// limit if known. It has samples.
[[nodiscard]] Plot usage_plot(const WatchedDevice& device, const TimeFrame& frame);
/// A row for each device, a column for each stretch of time: its maximum usage. The frame's height is ignored.
[[nodiscard]] Plot usage_heat_map(const MachineState& state, const TimeFrame& frame);

/// Numbers that an axis shows whatever the values are.
struct ShownNumbers {
  double lowest = 0;
  double highest = 0;
};
/// A number over time: its mean as a line, from the lowest to the highest of each moment as a thin one. It has points.
[[nodiscard]] Plot value_plot(std::span<const HistoryMoment> points, const TimeFrame& frame,
                              const std::optional<ShownNumbers>& shown = {});

/// A bar of parts, one after the other.
struct BarRow {
  struct Part {
    Role role = Role::site1;
    std::string words;  ///< text in the legend
    std::uint64_t bytes = 0;
  };
  std::string label;
  std::vector<Part> parts;
};

/// Bars below each other; the axis reaches to `scale_bytes`, or to the longest bar if that is more.
[[nodiscard]] Plot bars_plot(const std::vector<BarRow>& rows, std::uint64_t scale_bytes = 0);

}  // namespace tidemark
