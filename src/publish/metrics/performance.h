// What a performance monitor has seen, as metrics. docs/performance-monitor.md lists them.
#pragma once

#include <span>
#include <string>

#include "inprocess/performance/performance_report.h"
#include "publish/metrics/metric.h"

namespace tidemark {

/// Of the training; those of the machine are metric_families().
[[nodiscard]] std::span<const MetricFamily> performance_families();

/// With those of the machine, where it was watched.
[[nodiscard]] MetricSet to_metrics(const PerformanceReport& report, const std::string& version);

}  // namespace tidemark
