// Metrics as the OpenTelemetry protocol has them, in its JSON encoding, and what pushes them.
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

/// Who measured: attributes of the resource ("service.name", "host.name").
struct OtlpResource {
  MetricAttributes attributes;
  std::string version;  ///< of this program
};

/// The resource of this process.
[[nodiscard]] OtlpResource otlp_resource(const std::string& version);

/// An ExportMetricsServiceRequest.
[[nodiscard]] std::string otlp_json(const MetricSet& set, const OtlpResource& resource);

/// What becomes of a push by the protocol's rules.
enum class PushOutcome : std::uint8_t { taken, retry, refused };

/// Of an answer's HTTP status: 429, 502, 503 and 504 may be tried again, every other failure may not.
[[nodiscard]] PushOutcome outcome_of(int status);

/// The pause before the n-th attempt to push something again (from 1): doubles from 1 s up to a minute.
[[nodiscard]] std::chrono::milliseconds retry_pause(std::uint32_t attempt);

/// "http://host:4318" → "http://host:4318/v1/metrics"; a URL that ends so stays.
[[nodiscard]] std::string otlp_url(const std::string& endpoint);

/// "a=1,b=x%20y", as OTEL_EXPORTER_OTLP_HEADERS has them, as lines of a request: "a: 1". What is no header is left out.
[[nodiscard]] std::vector<std::string> otlp_headers(const std::string& list);

/// Thread-safe.
class OtlpPush {
 public:
  /// `problem` gets a sentence when pushing begins to fail, and when it works again; on another thread.
  OtlpPush(const std::string& endpoint, OtlpResource resource, std::function<void(const std::string&)> problem);
  /// Waits 2 s at most for what is to be sent.
  ~OtlpPush();

  /// Never waits. When 32 are waiting, the oldest is dropped.
  void push(std::shared_ptr<const MetricSet> set);
  [[nodiscard]] std::uint64_t dropped() const { return worker_.dropped(); }

 private:
  void send(const MetricSet& set);

  std::string url_;
  std::vector<std::string> headers_;
  OtlpResource resource_;
  std::function<void(const std::string&)> problem_;
  bool failing_ = false;  ///< of the worker's thread
  Worker worker_;
};

}  // namespace tidemark
