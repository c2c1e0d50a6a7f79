#include "publish/metrics/otlp.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

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

constexpr std::size_t kMaxWaiting = 32;
constexpr std::chrono::milliseconds kFirstPause{1000};
constexpr std::chrono::milliseconds kLongestPause{60'000};
constexpr std::chrono::milliseconds kPatienceAtEnd{2000};

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t index = 0; index < text.size(); ++index) {
    unsigned char byte = 0;
    const char* const digits = text.data() + index + 1;
    if (text[index] == '%' && index + 2 < text.size() &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      decoded += static_cast<char>(byte);
      index += 2;
    } else {
      decoded += text[index];
    }
  }
  return decoded;
}

std::string_view without_spaces(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  const std::size_t end = text.find_last_not_of(' ');
  return end == std::string_view::npos ? "" : text.substr(begin, end - begin + 1);
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

PushOutcome outcome_of(int status) {
  if (status >= 200 && status < 300) return PushOutcome::taken;
  const bool later = status == 429 || status == 502 || status == 503 || status == 504;
  return later ? PushOutcome::retry : PushOutcome::refused;
}

std::chrono::milliseconds retry_pause(std::uint32_t attempt) {
  constexpr std::uint32_t kMaxDoublings = 6;
  const auto doublings = std::min(attempt == 0 ? 0 : attempt - 1, kMaxDoublings);
  return std::min(kFirstPause * (1 << doublings), kLongestPause);
}

std::string otlp_url(const std::string& endpoint) {
  constexpr std::string_view kPath = "/v1/metrics";
  if (endpoint.ends_with(kPath)) return endpoint;
  return (endpoint.ends_with('/') ? endpoint.substr(0, endpoint.size() - 1) : endpoint) + std::string(kPath);
}

std::vector<std::string> otlp_headers(const std::string& list) {
  std::vector<std::string> headers;
  for (std::string_view rest = list; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string name(without_spaces(one.substr(0, equals)));
    const std::string value = percent_decoded(without_spaces(one.substr(equals + 1)));
    const auto is_control = [](unsigned char letter) { return std::iscntrl(letter) != 0; };
    if (name.empty() || std::any_of(name.begin(), name.end(), is_control) ||
        std::any_of(value.begin(), value.end(), is_control)) {
      continue;
    }
    headers.push_back(fmt::format("{}: {}", name, value));
  }
  return headers;
}

OtlpPush::OtlpPush(const std::string& endpoint, OtlpResource resource, std::function<void(const std::string&)> problem)
    : url_(otlp_url(endpoint)),
      resource_(std::move(resource)),
      problem_(std::move(problem)),
      worker_(kMaxWaiting, [this](const std::string& why) { problem_(fmt::format("OTLP: {}", why)); }) {
  const char* const headers = std::getenv("OTEL_EXPORTER_OTLP_HEADERS");
  if (headers != nullptr) headers_ = otlp_headers(headers);
  headers_.emplace_back("Content-Type: application/json");
}

OtlpPush::~OtlpPush() {
  worker_.finish(kPatienceAtEnd);
}

void OtlpPush::push(std::shared_ptr<const MetricSet> set) {
  worker_.add([this, set = std::move(set)] { send(*set); });
}

void OtlpPush::send(const MetricSet& set) {
  const std::string body = otlp_json(set, resource_);
  for (std::uint32_t attempt = 1;; ++attempt) {
    const auto answer = post({url_, body, headers_}, worker_.stopping());
    const PushOutcome outcome = answer ? outcome_of(answer->status) : PushOutcome::retry;
    if (outcome == PushOutcome::taken) {
      if (std::exchange(failing_, false)) problem_(fmt::format("OTLP: {} takes metrics again", shown_url(url_)));
      return;
    }
    const std::string why =
        answer ? fmt::format("{} answers with status {}", shown_url(url_), answer->status) : answer.error().message;
    const bool stopped = worker_.stopping().load();
    if (!stopped && !std::exchange(failing_, true)) {
      problem_(fmt::format("OTLP: {} ({})", why,
                           outcome == PushOutcome::retry ? "trying again" : "what it refuses is dropped"));
    }
    auto pause = retry_pause(attempt);
    if (answer && answer->retry_after) pause = std::max<std::chrono::milliseconds>(*answer->retry_after, kFirstPause);
    if (stopped || outcome == PushOutcome::refused || !worker_.pause(pause)) {
      worker_.count_dropped();
      return;
    }
  }
}

}  // namespace tidemark
