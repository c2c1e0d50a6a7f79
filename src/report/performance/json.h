// What a performance monitor has seen, as JSON; docs/performance-monitor.md describes the fields. gpu_metrics,
// training_metrics {name: {mean, max, min, std}} and system_metrics {cpu_usage, memory_usage, disk_usage} are those of
// the Python tool before Tidemark.
#pragma once

#include <string>

#include "inprocess/performance/performance_report.h"

namespace tidemark {

[[nodiscard]] std::string to_json(const PerformanceReport& report);

}  // namespace tidemark
