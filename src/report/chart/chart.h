// Results as pictures, drawn with cairo: the same drawing for every format.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "analyze/fragmentation/fragmentation.h"
#include "analyze/ledger/ledger.h"
#include "analyze/sweep/sweep.h"
#include "analyze/timeline/timeline.h"
#include "analyze/usage/breakdown.h"
#include "base/result.h"
#include "inprocess/performance/performance_report.h"
#include "monitor/machine_state.h"

namespace tidemark {

enum class ChartFormat : std::uint8_t { png, svg };

/// Parses "png" or "svg".
[[nodiscard]] constexpr ChartFormat chart_format(std::string_view name) {
  return name == "svg" ? ChartFormat::svg : ChartFormat::png;
}

/// Writes a picture that was drawn to the file; an error of drawing it otherwise.
Result<void> write_picture(const std::string& path, const Result<std::string>& picture);

/// Pictures have one panel for each device of each recording. Fails when cairo does, or for more panels than these.
inline constexpr std::size_t kMaxPanels = 64;

/// Memory over time, on one time axis; the host's too if it was sampled and kMaxPanels leaves room for it. Returns the
/// file's bytes.
Result<std::string> draw_chart(std::span<const Timeline> timelines, ChartFormat format);

/// All memory of the GPU by owner, in layers, with the used memory reported by the driver. Devices without samples have
/// no panel.
Result<std::string> draw_ledger(std::span<const Ledger> ledgers, ChartFormat format);

/// Peaks over each numeric argument.
Result<std::string> draw_sweep_curves(const Sweep& sweep, ChartFormat format);
/// Configurations that fit, a panel for each GPU.
Result<std::string> draw_sweep_fits(const Sweep& sweep, ChartFormat format);

enum class UsageTimes : std::uint8_t {
  since_begin = 0,  ///< since the beginning of monitoring
  of_day = 1,       ///< UTC, by MachineState::wall_ns()
};
/// How much of each watched device was used over time, and a heat map of all of them. Devices without samples have no
/// panel.
Result<std::string> draw_usage(const MachineState& state, ChartFormat format,
                               UsageTimes times = UsageTimes::since_begin);

/// Metrics, durations of steps and the machine over time, a panel each; of more metrics than kMaxDrawnMetrics the
/// first.
inline constexpr std::size_t kMaxDrawnMetrics = 24;
Result<std::string> draw_performance(const PerformanceReport& report, ChartFormat format);

/// Allocated memory at one moment, by category within each component, layer or module.
Result<std::string> draw_breakdown(std::span<const Breakdown> results, ChartFormat format);

/// The segments at FragmentationOptions::at: allocated, pending and free blocks, to scale within each device.
Result<std::string> draw_segment_map(std::span<const Fragmentation> results, ChartFormat format);

}  // namespace tidemark
