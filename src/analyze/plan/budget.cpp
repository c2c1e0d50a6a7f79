#include "analyze/plan/budget.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/uint128.h"

namespace tidemark {
namespace {

constexpr double kMillion = 1e6;
constexpr double kMaxBytes = 9e18;  // fits 64 bits

// Factors of bytes; the first letter of a unit decides.
constexpr std::array<std::pair<char, double>, 5> kSizeUnits = {
    {{'b', 1}, {'k', 0x1p10}, {'m', 0x1p20}, {'g', 0x1p30}, {'t', 0x1p40}}};

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

/// 0 for what is no unit.
double factor_of(std::string_view unit) {
  if (unit.empty()) return 1;
  std::string rest;
  for (const char letter : unit.substr(1)) rest += lower(letter);
  for (const auto& [letter, factor] : kSizeUnits) {
    if (letter != lower(unit[0])) continue;
    const bool is_unit = rest.empty() || (letter != 'b' && (rest == "b" || rest == "ib"));
    return is_unit ? factor : 0;
  }
  return 0;
}

}  // namespace

bool Budget::exceeded(std::uint64_t before, std::uint64_t now) const {
  if (now <= before) return false;
  const std::uint64_t more = now - before;
  if (!relative) return more > amount;
  return uint128{more} * static_cast<std::uint64_t>(kMillion) > uint128{amount} * before;
}

Result<Budget> parse_budget(std::string_view text) {
  const Error error{fmt::format("invalid value '{}' (expected a share such as 5%, or a size such as 100MiB)", text)};
  double number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || !(number >= 0)) return error;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const bool relative = unit == "%";
  const double scaled = number * (relative ? kMillion / 100 : factor_of(unit));
  if ((!relative && factor_of(unit) == 0) || scaled > kMaxBytes) return error;
  return Budget{std::string(text), relative, static_cast<std::uint64_t>(std::llround(scaled))};
}

}  // namespace tidemark
