// Metrics in the OpenTelemetry protocol's JSON encoding, and the client that pushes them.
//
// https://opentelemetry.io/docs/specs/otlp, opentelemetry/proto/metrics/v1/metrics.proto: 64-bit integers are strings,
// enumerations numbers, keys lowerCamelCase.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/worker.h"
#include "http/post.h"
#include "publish/metrics/metric.h"

namespace tidemark {

/// The source of the measurements: attributes of the resource ("service.name", "host.name").
struct OtlpResource {
  MetricAttributes attributes;
  std::string version;  ///< of this program
};

/// The resource of this process.
[[nodiscard]] OtlpResource otlp_resource(const std::string& version);

/// An ExportMetricsServiceRequest.
[[nodiscard]] std::string otlp_json(const MetricSet& set, const OtlpResource& resource);

/// The outcome of a push by the protocol's rules.
enum class PushOutcome : std::uint8_t { taken, retry, refused };

/// For an answer's HTTP status: 429, 502, 503 and 504 may be retried, other failures may not.
[[nodiscard]] PushOutcome outcome_of(int status);

/// The pause before the n-th retry of a push (from 1): doubles from 1 s up to a minute.
[[nodiscard]] std::chrono::milliseconds retry_pause(std::uint32_t attempt);

/// "http://host:4318" → "http://host:4318/v1/metrics"; a URL with that ending is unchanged.
[[nodiscard]] std::string otlp_url(const std::string& endpoint);

/// Parses "a=1,b=x%20y", the form of OTEL_EXPORTER_OTLP_HEADERS, into header lines: "a: 1". Invalid entries are left
/// out.
[[nodiscard]] std::vector<std::string> otlp_headers(const std::string& list);

/// Thread-safe.
class OtlpPush {
 public:
  /// `problem` is called with a sentence when pushing begins to fail, and when it works again; on another thread.
  OtlpPush(const std::string& endpoint, OtlpResource resource, std::function<void(const std::string&)> problem);
  /// Waits at most 2 s for pending pushes.
  ~OtlpPush();

  /// Never waits. If 32 are waiting, the oldest is dropped.
  void push(std::shared_ptr<const MetricSet> set);
  [[nodiscard]] std::uint64_t dropped() const { return worker_.dropped(); }

 private:
  void send(const MetricSet& set);

  std::string url_;
  std::vector<std::string> headers_;
  OtlpResource resource_;
  std::function<void(const std::string&)> problem_;
  bool failing_ = false;  ///< used by the worker's thread
  Worker worker_;
};

}  // namespace tidemark
