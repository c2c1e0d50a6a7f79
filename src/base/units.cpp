#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

namespace tidemark {
namespace {

struct Quantity {
  double number = 0;
  std::string_view digits;  // the number as it was written
  std::string_view unit;
};

std::optional<Quantity> split(std::string_view text) {
  Quantity quantity;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, quantity.number);
  if (error != std::errc() || !std::isfinite(quantity.number) || text.starts_with('-')) return std::nullopt;
  quantity.digits = text.substr(0, static_cast<std::size_t>(rest - text.data()));
  quantity.unit = text.substr(quantity.digits.size());
  quantity.unit.remove_prefix(std::min(quantity.unit.find_first_not_of(' '), quantity.unit.size()));
  if (quantity.unit.empty() && rest != end) return std::nullopt;  // blanks at the end
  return quantity;
}

// The power of 1024 that a unit stands for.
std::optional<int> power_of(std::string_view unit) {
  std::string word(unit);
  for (char& letter : word) letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  if (word.empty() || word == "b") return 0;
  constexpr std::string_view kPrefixes = "kmgtpe";
  const std::size_t power = kPrefixes.find(word.front());
  const std::string_view rest = std::string_view(word).substr(1);
  const bool is_unit = rest == "b" || rest == "ib" || rest == "i" || (rest.empty() && word != "e");
  if (power == std::string_view::npos || !is_unit) return std::nullopt;
  return static_cast<int>(power) + 1;
}

}  // namespace

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  static constexpr std::array<const char*, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double scaled = static_cast<double>(bytes) / 1024.0;
  std::size_t unit = 0;
  // 1023.95 would print as "1024.0": move on to the next unit before that happens.
  while (scaled >= 1023.95 && unit + 1 < kUnits.size()) {
    scaled /= 1024.0;
    ++unit;
  }
  const bool stopped = bytes == std::numeric_limits<std::uint64_t>::max();
  return fmt::format("{}{:.1f} {}", stopped ? "\xE2\x89\xA5 " : "", scaled, kUnits[unit]);  // ≥
}

std::string format_duration_ns(std::uint64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1'000) return fmt::format("{} ns", ns);
  if (ns < 1'000'000) return fmt::format("{:.1f} us", value / 1e3);
  if (ns < 1'000'000'000) return fmt::format("{:.1f} ms", value / 1e6);
  return fmt::format("{:.3f} s", value / 1e9);
}

std::string format_count(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  constexpr double kLimit = 0x1p63;
  const auto quantity = split(text);
  const auto power = quantity ? power_of(quantity->unit) : std::nullopt;
  if (!power) return std::nullopt;
  const double bytes = std::ldexp(quantity->number, 10 * *power);
  if (!(bytes < kLimit)) return std::nullopt;
  // Whole numbers of more digits than a double holds.
  std::uint64_t whole = 0;
  const char* const end = quantity->digits.data() + quantity->digits.size();
  const auto [rest, error] = std::from_chars(quantity->digits.data(), end, whole);
  if (error == std::errc() && rest == end) return whole << (10 * *power);
  return static_cast<std::uint64_t>(std::llround(bytes));
}

std::optional<double> parse_time(std::string_view text, double unit_ns) {
  constexpr std::array<std::pair<std::string_view, double>, 11> kUnits = {{{"ns", 1},
                                                                           {"us", 1e3},
                                                                           {"ms", 1e6},
                                                                           {"s", 1e9},
                                                                           {"sec", 1e9},
                                                                           {"m", 60e9},
                                                                           {"min", 60e9},
                                                                           {"h", 3600e9},
                                                                           {"d", 86'400e9},
                                                                           {"w", 604'800e9},
                                                                           {"y", 31'536'000e9}}};
  const auto quantity = split(text);
  if (!quantity) return std::nullopt;
  if (quantity->unit.empty()) return quantity->number;
  const auto* const unit =
      std::find_if(kUnits.begin(), kUnits.end(), [&](const auto& known) { return known.first == quantity->unit; });
  return unit == kUnits.end() ? std::nullopt : std::optional(quantity->number * (unit->second / unit_ns));
}

bool has_no_unit(std::string_view text) {
  const auto quantity = split(text);
  return quantity && quantity->unit.empty();
}

}  // namespace tidemark
