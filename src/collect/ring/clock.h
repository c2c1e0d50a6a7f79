// The time of an event, in ticks of the clock that the recorder chose (Clock).
#pragma once

#include <time.h>

#include <cstdint>

#include "collect/ring/layout.h"

namespace tidemark::ring {

inline std::uint64_t monotonic_ns() noexcept {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

inline std::uint64_t ticks(Clock clock) noexcept {
#if defined(__x86_64__)
  if (clock == Clock::tsc) [[likely]]
    return __builtin_ia32_rdtsc();
#endif
  (void)clock;
  return monotonic_ns();
}

}  // namespace tidemark::ring
