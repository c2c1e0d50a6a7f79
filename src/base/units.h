// Sizes and times in output, and in options, settings and files: one grammar for each. Bytes stay integers everywhere
// else.
//
//   SIZE: NUMBER [UNIT]   B, KB, MB, GB, TB, PB, EB, with an i (KiB) or without the B (K; not E), in any case; each is
//                         1024 of the one before; without a unit: bytes
//   TIME: NUMBER [UNIT]   ns, us, ms, s, sec, m, min, h, d, w, y (365 days); without a unit: see the option
//
// NUMBER is 0 or more, with a decimal fraction if need be (1.5, 1e3). Blanks may stand between it and its unit.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace tidemark {

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;

/// "1536.0 MiB", "12.3 GiB", "512 B": binary units, spelled out; one decimal from KiB on. "≥ 16.0 EiB" for the largest
/// number, at which sums saturate (arithmetic.h).
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);

/// "12.345 s", "3.2 ms", "17 ns".
[[nodiscard]] std::string format_duration_ns(std::uint64_t ns);

/// "1,234,567".
[[nodiscard]] std::string format_count(std::uint64_t count);

/// The number that the whole text is, in decimal: "128", "-1.5"; std::nullopt for any other text, and for a number that
/// `Number` cannot hold.
template <typename Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

/// Bytes, rounded to whole ones. nullopt if it is not a size, or 2^63 bytes or more.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);

inline constexpr double kNanosecond = 1;  ///< in nanoseconds, as are the following
inline constexpr double kMillisecond = 1e6;
inline constexpr double kSecond = 1e9;

/// A time, in units of `unit_ns` nanoseconds. nullopt if it is not a time.
[[nodiscard]] std::optional<double> parse_time(std::string_view text, double unit_ns);

/// Whether a number has no unit after it, so that the option decides it.
[[nodiscard]] bool has_no_unit(std::string_view text);

}  // namespace tidemark
