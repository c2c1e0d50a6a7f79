// From ticks of a recorded process to nanoseconds.
#pragma once

#include <cstdint>

#include "base/uint128.h"
#include "collect/ring/layout.h"

namespace tidemark {

/// Which clock recorded processes should use here: the TSC where the kernel itself keeps time by it, so that it runs at
/// one rate, never stops, and agrees between cores; it costs half of what clock_gettime does.
[[nodiscard]] ring::Clock choose_clock();

/// Relates the clock's ticks to CLOCK_MONOTONIC. One for the whole job, so that its processes share one time axis.
/// Immutable once constructed.
class TickClock {
 public:
  /// Takes 20 ms with the TSC: its rate is measured, not assumed (to some 5 ppm).
  explicit TickClock(ring::Clock clock);

  [[nodiscard]] ring::Clock clock() const { return clock_; }
  [[nodiscard]] std::uint64_t now() const;

  /// Nanoseconds between two readings; 0 when `to` is before `from`.
  [[nodiscard]] std::uint64_t between_ns(std::uint64_t from, std::uint64_t to) const {
    if (to <= from) return 0;
    const auto ticks = static_cast<uint128>(to - from);
    return static_cast<std::uint64_t>((ticks * ns_per_tick_) >> kShift);
  }
  [[nodiscard]] std::uint64_t ticks_in_ns(std::uint64_t ns) const {
    return static_cast<std::uint64_t>((static_cast<uint128>(ns) << kShift) / ns_per_tick_);
  }
  /// Wall clock (ns since 1970) of a reading.
  [[nodiscard]] std::uint64_t wall_ns(std::uint64_t ticks) const;

 private:
  static constexpr int kShift = 40;

  ring::Clock clock_;
  std::uint64_t ns_per_tick_ = std::uint64_t{1} << kShift;  ///< fixed point
};

}  // namespace tidemark
