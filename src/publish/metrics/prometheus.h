// Metrics in Prometheus's text exposition format 0.0.4.
//
// Format: https://prometheus.io/docs/instrumenting/exposition_formats; names are mapped as in OpenTelemetry's
// specification (compatibility/prometheus_and_openmetrics.md).
#pragma once

#include <string>
#include <string_view>

#include "publish/metrics/metric.h"

namespace tidemark {

inline constexpr std::string_view kPrometheusContentType = "text/plain; version=0.0.4; charset=utf-8";

/// "hw.gpu.memory.usage" in bytes → "hw_gpu_memory_usage_bytes".
[[nodiscard]] std::string prometheus_name(const MetricFamily& family);

/// "hw.id" → "hw_id".
[[nodiscard]] std::string prometheus_label(std::string_view attribute);

/// The whole page.
[[nodiscard]] std::string prometheus_text(const MetricSet& set);

}  // namespace tidemark
