#include "publish/metrics/otlp.h"

#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>

namespace tidemark {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kCumulative = 2;  // AGGREGATION_TEMPORALITY_CUMULATIVE

Json attributes_json(const MetricAttributes& attributes) {
  Json list = Json::array();
  for (const auto& [name, value] : attributes) {
    list.push_back({{"key", name}, {"value", {{"stringValue", valid_utf8(value)}}}});
  }
  return list;
}

Json point_json(const MetricPoint& point, const MetricSet& set, bool is_sum) {
  Json object;
  object["attributes"] = attributes_json(point.attributes);
  if (is_sum) object["startTimeUnixNano"] = std::to_string(set.start_unix_ns);
  object["timeUnixNano"] = std::to_string(set.unix_ns);
  if (const auto* const integer = std::get_if<std::int64_t>(&point.value)) {
    object["asInt"] = std::to_string(*integer);
  } else {
    object["asDouble"] = std::get<double>(point.value);
  }
  return object;
}

Json metric_json(const Metric& metric, const MetricSet& set) {
  const MetricFamily& family = *metric.family;
  const bool is_sum = family.instrument != Instrument::gauge;
  Json points = Json::array();
  for (const MetricPoint& point : metric.points) points.push_back(point_json(point, set, is_sum));
  Json data;
  data["dataPoints"] = std::move(points);
  if (is_sum) {
    data["aggregationTemporality"] = kCumulative;
    data["isMonotonic"] = family.instrument == Instrument::counter;
  }
  return {{"name", family.name},
          {"description", family.description},
          {"unit", family.unit},
          {is_sum ? "sum" : "gauge", std::move(data)}};
}

}  // namespace

OtlpResource otlp_resource(const std::string& version) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = 0;
  const std::string name = host.data();
  return {{{"service.name", "tidemark"},
           {"service.version", version},
           {"service.instance.id", name + ":" + std::to_string(::getpid())},
           {"host.name", name}},
          version};
}

std::string otlp_json(const MetricSet& set, const OtlpResource& resource) {
  Json metrics = Json::array();
  for (const Metric& metric : set.metrics) {
    if (!metric.points.empty()) metrics.push_back(metric_json(metric, set));
  }
  Json scope;
  scope["scope"] = {{"name", "tidemark"}, {"version", resource.version}};
  scope["metrics"] = std::move(metrics);
  Json from;
  from["resource"] = {{"attributes", attributes_json(resource.attributes)}};
  from["scopeMetrics"] = Json::array({std::move(scope)});
  Json request;
  request["resourceMetrics"] = Json::array({std::move(from)});
  return request.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tidemark
