#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "collect/recorder/lanes/lane_reader.h"
#include "collect/ring/layout.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

std::uint64_t difference(std::uint64_t a, std::uint64_t b) {
  return a > b ? a - b : b - a;
}

struct Moment {
  std::uint64_t ticks;
  std::uint64_t ns;
  std::uint64_t uncertainty_ns;
};

Moment now_on_both(const TickClock& clock) {
  Moment best{0, 0, ~std::uint64_t{0}};
  for (int attempt = 0; attempt < 20; ++attempt) {
    const std::uint64_t before = ring::monotonic_ns();
    const std::uint64_t ticks = clock.now();
    const std::uint64_t after = ring::monotonic_ns();
    if (after - before < best.uncertainty_ns) best = {ticks, before, after - before};
  }
  return best;
}

TEST(TickClockTest, MonotonicTicksAreNanoseconds) {
  const TickClock clock(ring::Clock::monotonic);
  EXPECT_EQ(clock.between_ns(100, 350), 250U);
  EXPECT_EQ(clock.between_ns(350, 100), 0U);
  EXPECT_EQ(clock.between_ns(7, 7), 0U);
  EXPECT_EQ(clock.ticks_in_ns(12'345), 12'345U);
  const std::uint64_t before = ring::monotonic_ns();
  const std::uint64_t now = clock.now();
  EXPECT_GE(now, before);
  EXPECT_LE(now, ring::monotonic_ns());
}

// The product of a 64-bit count and a 64-bit rate needs 128 bits.
TEST(TickClockTest, ExtremeTicksDoNotOverflow) {
  const TickClock clock(ring::Clock::monotonic);
  EXPECT_EQ(clock.between_ns(0, ~std::uint64_t{0}), ~std::uint64_t{0});
  EXPECT_EQ(clock.between_ns(1, std::uint64_t{1} << 63), (std::uint64_t{1} << 63) - 1);
  EXPECT_EQ(clock.ticks_in_ns(~std::uint64_t{0}), ~std::uint64_t{0});
  const TickClock chosen(choose_clock());
  for (const std::uint64_t ns : {std::uint64_t{1000}, kSecond, 86'400 * kSecond, 10 * 365 * 86'400 * kSecond}) {
    EXPECT_LE(difference(chosen.between_ns(5, 5 + chosen.ticks_in_ns(ns)), ns), 2U) << ns;
  }
}

// The TSC's rate is measured in 20 ms, to some 5 ppm on a quiet machine: 100 ppm of 50 ms are 5 microseconds.
TEST(TickClockTest, AgreesWithTheMonotonicClock) {
  constexpr std::uint64_t kToleranceNs = 5'000;
  std::uint64_t smallest = ~std::uint64_t{0};
  for (int attempt = 0; attempt < 40 && smallest > kToleranceNs; ++attempt) {  // machines are busy at times
    const TickClock clock(choose_clock());
    const Moment first = now_on_both(clock);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const Moment second = now_on_both(clock);
    const std::uint64_t off = difference(clock.between_ns(first.ticks, second.ticks), second.ns - first.ns);
    const std::uint64_t unsure = first.uncertainty_ns + second.uncertainty_ns;
    smallest = std::min(smallest, off > unsure ? off - unsure : 0);
  }
  EXPECT_LE(smallest, kToleranceNs);
}

TEST(TickClockTest, WallTimeOfAReading) {
  for (const ring::Clock which : {ring::Clock::monotonic, choose_clock()}) {
    const TickClock clock(which);
    const auto wall = [] {
      return static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
              .count());
    };
    // wall_ns() may lose the processor between its own two readings: the best of several.
    const auto off = [&](std::uint64_t seconds, bool past) {
      std::uint64_t least = ~std::uint64_t{0};
      for (int attempt = 0; attempt < 20; ++attempt) {
        const std::uint64_t apart = clock.ticks_in_ns(seconds * kSecond);
        const std::uint64_t before = wall();
        const std::uint64_t ticks = clock.now();
        const std::uint64_t said = clock.wall_ns(past ? ticks - apart : ticks + apart);
        const std::uint64_t expected = past ? before - seconds * kSecond : before + seconds * kSecond;
        least = std::min(least, difference(said, expected));
      }
      return least;
    };
    EXPECT_LT(off(0, false), kSecond / 100);
    EXPECT_LT(off(3, true), kSecond / 100);
    EXPECT_LT(off(3, false), kSecond / 100);
  }
}

}  // namespace
}  // namespace tidemark
