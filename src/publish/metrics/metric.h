// Metrics in OpenTelemetry's model: families with a name, a unit and an instrument, and points with attributes. Both
// outputs, Prometheus's text and OTLP, are made from these.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tidemark {

enum class Instrument : std::uint8_t {
  gauge,            ///< an independent value
  up_down_counter,  ///< a sum that grows and shrinks: bytes in use
  counter,          ///< a sum that only grows
};

/// A kind of measurement. Lives as long as the program.
struct MetricFamily {
  std::string_view name;  ///< "hw.gpu.memory.usage"
  std::string_view unit;  ///< in UCUM: "By", "s", "1" for a ratio, "{process}" for a count of something
  Instrument instrument = Instrument::gauge;
  std::string_view description;  ///< one sentence
};

/// Names are OpenTelemetry's ("hw.id"); each once. Values may be any bytes.
using MetricAttributes = std::vector<std::pair<std::string_view, std::string>>;

/// The attributes and one more.
[[nodiscard]] MetricAttributes with(MetricAttributes attributes, std::string_view name, std::string value);

using MetricValue = std::variant<std::int64_t, double>;

/// Integers of metrics have a sign: a larger value becomes the largest one.
[[nodiscard]] std::int64_t metric_integer(std::uint64_t value);

struct MetricPoint {
  MetricAttributes attributes;
  MetricValue value;
};

/// The points of one family, no two with the same attributes.
struct Metric {
  const MetricFamily* family = nullptr;
  std::vector<MetricPoint> points;
};

/// Measurements at one time. Families without points are left out.
struct MetricSet {
  std::uint64_t start_unix_ns = 0;  ///< start time of counters
  std::uint64_t unix_ns = 0;
  std::vector<Metric> metrics;
};

/// Removes families without points.
void drop_empty(MetricSet& set);

/// Removes points with the attributes of an earlier one: Prometheus refuses a page with duplicate label sets.
void drop_doubles(Metric& metric);

/// The text as valid UTF-8: invalid bytes become U+FFFD. Prometheus rejects a whole page for one such byte in a
/// process's name.
[[nodiscard]] std::string valid_utf8(std::string_view text);

}  // namespace tidemark
