// Round numbers for the axes of a chart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tidemark {

struct Tick {
  double value = 0;  ///< in the axis' own unit: bytes or ns
  std::string label;
};

/// Ticks from 0 to the first one not below `highest`, a few of them, at round binary sizes: "0", "2.5 GiB", "5 GiB".
[[nodiscard]] std::vector<Tick> byte_ticks(std::uint64_t highest);

/// Ticks from `begin_ns` up to `end_ns` at most, at round times: "0", "500 ms", "1 s".
[[nodiscard]] std::vector<Tick> time_ticks(std::uint64_t end_ns, std::uint64_t begin_ns = 0);

/// Ticks at round times of day, UTC, of the `duration_ns` from `begin_wall_ns` (since 1970) on; their values count from
/// there. The first tick and ticks at midnight name the day: "2026-11-23 18:00", "21:00", "2026-11-24", "03:00".
[[nodiscard]] std::vector<Tick> clock_ticks(std::uint64_t begin_wall_ns, std::uint64_t duration_ns);

/// Ticks at round numbers, from one not above `lowest` to one not below `highest`: "0.25", "-5", "1e+06". Two at least.
/// Numbers beyond 1e300 are taken as that.
[[nodiscard]] std::vector<Tick> number_ticks(double lowest, double highest);

}  // namespace tidemark
