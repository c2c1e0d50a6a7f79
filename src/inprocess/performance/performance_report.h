// The data collected by a performance monitor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collect/machine/host_activity.h"
#include "inprocess/performance/metric_table.h"
#include "inprocess/performance/metric_values.h"
#include "inprocess/performance/step_times.h"
#include "monitor/machine_state.h"

namespace tidemark {

struct MetricReport {
  std::string name;
  ValueSummary values;
  ValueHistory history;
};

/// A percentage that is read repeatedly.
struct WatchedPercent {
  std::optional<double> latest;
  RunningValue all;
  ValueHistory history;
};

struct SystemReport {
  std::uint32_t processors = 0;  ///< available to this process
  WatchedPercent cpu;            ///< of all processors
  WatchedPercent process_cpu;    ///< of one processor: 200 if this process keeps two busy
  WatchedPercent memory;         ///< of the host, the part that is not available
  std::string disk;              ///< a path on that disk
  std::optional<double> disk_percent;
  HostActivity first;  ///< at the beginning of watching
  HostActivity latest;
  ProcessPages process;  ///< of this process
};

/// Times are nanoseconds since the monitor was created.
struct PerformanceReport {
  std::uint64_t began_wall_ns = 0;  ///< since 1970, by the machine's clock at that time
  std::uint64_t now_ns = 0;
  std::uint64_t now_wall_ns = 0;      ///< the same moment since 1970: the clock may have been set meanwhile
  bool watching = false;              ///< the machine is still being watched
  std::int64_t pid = -1;              ///< of this process
  std::vector<MetricReport> metrics;  ///< in the order in which they were first logged
  std::uint64_t unnamed_values = 0;   ///< with names beyond MetricTable::kMaxNames
  std::uint64_t late_values = 0;      ///< logged after the monitor was stopped
  StepSummary steps;
  ValueHistory step_history;  ///< seconds
  SystemReport system;
  std::uint64_t machine_began_ns = 0;   ///< time 0 of `machine`
  std::optional<MachineState> machine;  ///< std::nullopt if it was not watched
};

}  // namespace tidemark
