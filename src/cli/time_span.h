// Spans of time as users write them: "90s", "10min", "2h", "30d".
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace tidemark::cli {

/// None where it is none, or not from 1 s to 100 years. Without a unit: seconds.
[[nodiscard]] std::optional<std::chrono::seconds> parse_time_span(const std::string& text);

/// The number of seconds, with fractions, whatever it is; "500ms" too. None where it is no time.
[[nodiscard]] std::optional<double> parse_seconds(const std::string& text);

/// What is wrong with it, or "": for Option::check().
[[nodiscard]] std::string time_span_problem(const std::string& text);

}  // namespace tidemark::cli
