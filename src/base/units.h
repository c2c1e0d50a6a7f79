// Sizes and times as people read them. Bytes stay integers everywhere else.
#pragma once

#include <cstdint>
#include <string>

namespace tidemark {

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;

/// "1536.0 MiB", "12.3 GiB", "512 B": binary units, spelled out; one decimal from KiB on. "≥ 16.0 EiB" of the largest
/// number, at which sums stop (saturating.h).
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);

/// "12.345 s", "3.2 ms", "17 ns".
[[nodiscard]] std::string format_duration_ns(std::uint64_t ns);

/// "1,234,567".
[[nodiscard]] std::string format_count(std::uint64_t count);

}  // namespace tidemark
