// All metrics that there are, and how they come from what a monitor knows. docs/metrics.md lists them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "inprocess/performance/performance_report.h"
#include "monitor/machine_state.h"
#include "monitor/recordings_watch.h"
#include "publish/metrics/metric.h"

namespace tidemark {

/// In the order of pages.
[[nodiscard]] std::span<const MetricFamily> metric_families();

/// What of the monitor itself is measured.
struct MonitorFacts {
  std::string version;
  /// Things that were not delivered, by the output that dropped them: "otlp", "history", "action".
  std::vector<std::pair<std::string, std::uint64_t>> dropped = {};
};

[[nodiscard]] MetricSet to_metrics(const MachineState& state, std::span<const RecordedProcess> recorded,
                                   const MonitorFacts& monitor);

/// Of the training; those of the machine are metric_families().
[[nodiscard]] std::span<const MetricFamily> performance_families();

/// With those of the machine, where it was watched.
[[nodiscard]] MetricSet to_metrics(const PerformanceReport& report, const std::string& version);

}  // namespace tidemark
