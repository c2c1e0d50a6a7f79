#include "analyze/plan/budget.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/uint128.h"
#include "base/units.h"

namespace tidemark {
namespace {

constexpr double kMillion = 1e6;
constexpr double kMaxShare = 9e18;  // fits 64 bits

}  // namespace

bool Budget::exceeded(std::uint64_t before, std::uint64_t now) const {
  if (now <= before) return false;
  const std::uint64_t more = now - before;
  if (!relative) return more > amount;
  return uint128{more} * static_cast<std::uint64_t>(kMillion) > uint128{amount} * before;
}

Result<Budget> parse_budget(std::string_view text) {
  const Error error{fmt::format("invalid value '{}' (expected a share such as 5%, or a size such as 100MiB)", text)};
  if (!text.ends_with('%')) {
    const auto bytes = parse_size(text);
    return bytes ? Result<Budget>(Budget{std::string(text), false, *bytes}) : error;
  }
  double percent = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size() - 1, percent);
  const double share = percent * (kMillion / 100);
  const bool whole = failure == std::errc() && end == text.data() + text.size() - 1;
  if (!whole || !(percent >= 0) || share > kMaxShare) return error;
  return Budget{std::string(text), true, static_cast<std::uint64_t>(std::llround(share))};
}

}  // namespace tidemark
