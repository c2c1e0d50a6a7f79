// Metrics as the OpenTelemetry protocol has them, in its JSON encoding.
//
// https://opentelemetry.io/docs/specs/otlp, opentelemetry/proto/metrics/v1/metrics.proto: 64-bit integers are strings,
// enumerations numbers, keys lowerCamelCase.
#pragma once

#include <string>
#include <vector>

#include "publish/metrics/metric.h"

namespace tidemark {

/// Who measured: attributes of the resource ("service.name", "host.name").
struct OtlpResource {
  MetricAttributes attributes;
  std::string version;  ///< of this program
};

/// The resource of this process.
[[nodiscard]] OtlpResource otlp_resource(const std::string& version);

/// An ExportMetricsServiceRequest.
[[nodiscard]] std::string otlp_json(const MetricSet& set, const OtlpResource& resource);

}  // namespace tidemark
