#include "collect/recorder/lanes/clock.h"

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "collect/ring/clock.h"

namespace tidemark {
namespace {

struct ClockReading {
  std::uint64_t ticks;
  std::uint64_t ns;
};

// The tightest of several brackets: the reading least disturbed by interrupts.
ClockReading read_both(ring::Clock clock) {
  ClockReading best{};
  std::uint64_t narrowest = ~std::uint64_t{0};
  for (int attempt = 0; attempt < 16; ++attempt) {
    const std::uint64_t before = ring::monotonic_ns();
    const std::uint64_t ticks = ring::ticks(clock);
    const std::uint64_t after = ring::monotonic_ns();
    if (after - before < narrowest) {
      narrowest = after - before;
      best = {ticks, before + (after - before) / 2};
    }
  }
  return best;
}

}  // namespace

ring::Clock choose_clock() {
#if defined(__x86_64__)
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string source;
  if (std::getline(file, source) && source == "tsc") return ring::Clock::tsc;
#endif
  return ring::Clock::monotonic;
}

TickClock::TickClock(ring::Clock clock) : clock_(clock) {
  if (clock == ring::Clock::monotonic) return;
  const ClockReading first = read_both(clock);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const ClockReading second = read_both(clock);
  const auto ns = static_cast<uint128>(second.ns - first.ns);
  ns_per_tick_ = static_cast<std::uint64_t>((ns << kShift) / (second.ticks - first.ticks));
}

std::uint64_t TickClock::now() const {
  return ring::ticks(clock_);
}

std::uint64_t TickClock::wall_ns(std::uint64_t ticks) const {
  const std::uint64_t here = now();
  const auto wall = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
  return wall - between_ns(ticks, here) + between_ns(here, ticks);
}

}  // namespace tidemark
