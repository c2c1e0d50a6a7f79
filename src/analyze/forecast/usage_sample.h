// What a forecast is made from.
#pragma once

#include <cstdint>
#include <optional>

namespace tidemark {

/// How much was used at a time.
struct UsageSample {
  std::uint64_t time_ns = 0;  ///< of a clock that does not go back; samples come in its order
  std::uint64_t used_bytes = 0;
  std::optional<std::uint64_t> peak_bytes;  ///< the most since the sample before, where a recorder saw it
  std::optional<std::uint64_t> steps;       ///< training steps that were complete then, where they are known
};

inline constexpr double kNanosecondsPerSecond = 1e9;

}  // namespace tidemark
