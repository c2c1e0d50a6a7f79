#include "cli/time_span.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

namespace tidemark::cli {

std::optional<double> parse_seconds(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, double>, 10> kUnits = {{{"", 1},
                                                                           {"ms", 0.001},
                                                                           {"s", 1},
                                                                           {"sec", 1},
                                                                           {"m", 60},
                                                                           {"min", 60},
                                                                           {"h", 3600},
                                                                           {"d", 86'400},
                                                                           {"w", 604'800},
                                                                           {"y", 31'536'000}}};
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  for (const auto& [name, seconds] : kUnits) {
    if (unit == name) return number * seconds;
  }
  return std::nullopt;
}

std::optional<std::chrono::seconds> parse_time_span(const std::string& text) {
  constexpr double kMax = 100 * 31'536'000.0;
  const auto seconds = parse_seconds(text);
  if (!seconds || !(*seconds >= 1 && *seconds <= kMax)) return std::nullopt;
  return std::chrono::seconds(std::llround(*seconds));
}

std::string time_span_problem(const std::string& text) {
  if (parse_time_span(text)) return "";
  return fmt::format("invalid value '{}' (expected a time such as 90s, 10min, 2h or 30d)", text);
}

}  // namespace tidemark::cli
