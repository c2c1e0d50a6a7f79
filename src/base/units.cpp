#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <limits>

namespace tidemark {

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

}  // namespace tidemark
