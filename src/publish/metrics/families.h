// All metrics, and how they are computed from a monitor's data. docs/metrics.md lists them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cluster/job_report.h"
#include "inprocess/performance/performance_report.h"
#include "monitor/machine_state.h"
#include "monitor/recordings_watch.h"
#include "publish/metrics/metric.h"

namespace tidemark {

/// In the order of pages.
[[nodiscard]] std::span<const MetricFamily> metric_families();

/// Metrics of the monitor itself.
struct MonitorFacts {
  std::string version;
  /// Items that were not delivered, by the output that dropped them: "otlp", "history", "action".
  std::vector<std::pair<std::string, std::uint64_t>> dropped = {};
};

[[nodiscard]] MetricSet to_metrics(const MachineState& state, std::span<const RecordedProcess> recorded,
                                   const MonitorFacts& monitor);

/// Families of the training; the machine's are metric_families().
[[nodiscard]] std::span<const MetricFamily> performance_families();

/// Includes the machine's metrics if it was watched.
[[nodiscard]] MetricSet to_metrics(const PerformanceReport& report, const std::string& version);

/// Families of a job on several machines.
[[nodiscard]] std::span<const MetricFamily> job_families();

/// Ranks of nodes that are not heard have no points: their values are not current.
[[nodiscard]] MetricSet to_metrics(const JobReport& report);

}  // namespace tidemark
