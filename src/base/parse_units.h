// Sizes and times as users write them, in options, settings and files: one grammar for each. units.h prints them.
//
//   SIZE: NUMBER [UNIT]   B, KB, MB, GB, TB, PB, EB, with an i (KiB) or without the B (K; not E), in any case; each is
//   1024 of the one
//                         before; without a unit: bytes
//   TIME: NUMBER [UNIT]   ns, us, ms, s, sec, m, min, h, d, w, y (365 days); without a unit: what the option says
//
// NUMBER is 0 or more, with a decimal fraction if need be (1.5, 1e3). Blanks may stand between it and its unit.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tidemark {

/// Bytes, rounded to whole ones. None where it is no size, or 2^63 bytes or more.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);

inline constexpr double kNanosecond = 1;  ///< in nanoseconds, as are those below
inline constexpr double kMillisecond = 1e6;
inline constexpr double kSecond = 1e9;

/// A time, in units of `unit_ns` nanoseconds. None where it is no time.
[[nodiscard]] std::optional<double> parse_time(std::string_view text, double unit_ns);

/// Whether a number has no unit after it, which then depends on who reads it.
[[nodiscard]] bool has_no_unit(std::string_view text);

}  // namespace tidemark
