#include "publish/metrics/prometheus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <iterator>

namespace tidemark {
namespace {

struct UnitWord {
  std::string_view unit;
  std::string_view word;
};
constexpr std::array<UnitWord, 5> kUnitWords = {
    {{"By", "bytes"}, {"s", "seconds"}, {"Cel", "celsius"}, {"W", "watts"}, {"By/s", "bytes_per_second"}}};

// A ratio has this unit only in a gauge: a sum with unit 1 is a count.
std::string_view unit_word(const MetricFamily& family) {
  if (family.unit == "1") return family.instrument == Instrument::gauge ? "ratio" : "";
  const auto* const found = std::find_if(kUnitWords.begin(), kUnitWords.end(),
                                         [&](const UnitWord& known) { return known.unit == family.unit; });
  return found == kUnitWords.end() ? "" : found->word;
}

// Names in values come from other programs, and the page may be printed on a terminal by curl.
std::string without_controls(std::string_view text) {
  std::string plain = valid_utf8(text);
  constexpr std::size_t kBytes = 2;  // of U+0080 to U+009F
  for (std::size_t at = 0; at < plain.size(); ++at) {
    const auto letter = static_cast<unsigned char>(plain[at]);
    const bool is_pair = letter == 0xc2 && static_cast<unsigned char>(plain[at + 1]) < 0xa0;
    if (is_pair || (letter < ' ' && letter != '\n') || letter == 0x7f) plain.replace(at, is_pair ? kBytes : 1, 1, '?');
  }
  return plain;
}

void append_escaped(std::string& text, std::string_view value, bool in_quotes) {
  for (const char letter : value) {
    if (letter == '\\') {
      text += "\\\\";
    } else if (letter == '\n') {
      text += "\\n";
    } else if (letter == '"' && in_quotes) {
      text += "\\\"";
    } else {
      text += letter;
    }
  }
}

void append_value(std::string& text, const MetricValue& value) {
  if (const auto* const integer = std::get_if<std::int64_t>(&value)) {
    fmt::format_to(std::back_inserter(text), " {}\n", *integer);
    return;
  }
  const double number = std::get<double>(value);
  if (std::isfinite(number)) {
    fmt::format_to(std::back_inserter(text), " {}\n", number);
  } else {
    text += std::isnan(number) ? " NaN\n" : number > 0 ? " +Inf\n" : " -Inf\n";
  }
}

void append_labels(std::string& text, const MetricAttributes& attributes) {
  if (attributes.empty()) return;
  char before = '{';
  for (const auto& [name, value] : attributes) {
    text += before;
    text += prometheus_label(name) + "=\"";
    append_escaped(text, without_controls(value), true);
    text += '"';
    before = ',';
  }
  text += '}';
}

}  // namespace

std::string prometheus_label(std::string_view attribute) {
  std::string name(attribute);
  std::replace_if(
      name.begin(), name.end(), [](unsigned char letter) { return std::isalnum(letter) == 0; }, '_');
  return name;
}

std::string prometheus_name(const MetricFamily& family) {
  std::string name = prometheus_label(family.name);
  if (const std::string_view word = unit_word(family); !word.empty()) name += fmt::format("_{}", word);
  if (family.instrument == Instrument::counter) name += "_total";
  return name;
}

std::string prometheus_text(const MetricSet& set) {
  std::string text;
  for (const Metric& metric : set.metrics) {
    if (metric.points.empty()) continue;
    const std::string name = prometheus_name(*metric.family);
    text += fmt::format("# HELP {} ", name);
    append_escaped(text, metric.family->description, false);
    text +=
        fmt::format("\n# TYPE {} {}\n", name, metric.family->instrument == Instrument::counter ? "counter" : "gauge");
    for (const MetricPoint& point : metric.points) {
      text += name;
      append_labels(text, point.attributes);
      append_value(text, point.value);
    }
  }
  return text;
}

}  // namespace tidemark
