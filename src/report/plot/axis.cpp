#include "report/plot/axis.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <utility>

namespace tidemark {
namespace {

using Unit = std::pair<double, const char*>;

// The largest unit that is not larger than `highest`.
Unit unit_for(double highest, std::initializer_list<Unit> units) {
  Unit best = *units.begin();
  for (const Unit& unit : units) {
    if (highest >= unit.first) best = unit;
  }
  return best;
}

// 1, 2, 2.5 or 5 times a power of ten: at least `least`.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::string label(std::size_t index, double step, const Unit& unit) {
  return index == 0 ? "0" : fmt::format("{:.6g} {}", static_cast<double>(index) * step, unit.second);
}

}  // namespace

std::vector<Tick> byte_ticks(std::uint64_t highest) {
  constexpr double kIntervals = 5;
  const double top = static_cast<double>(std::max<std::uint64_t>(highest, 1));
  const Unit unit =
      unit_for(top, {{1, "B"}, {0x1p10, "KiB"}, {0x1p20, "MiB"}, {0x1p30, "GiB"}, {0x1p40, "TiB"}, {0x1p50, "PiB"}});
  double step = round_step(top / unit.first / kIntervals);
  if (unit.first == 1) step = std::max(1.0, std::ceil(step));
  std::vector<Tick> ticks;
  do {
    ticks.push_back({static_cast<double>(ticks.size()) * step * unit.first, label(ticks.size(), step, unit)});
  } while (ticks.back().value < top);
  return ticks;
}

std::vector<Tick> time_ticks(std::uint64_t end_ns, std::uint64_t begin_ns) {
  constexpr double kIntervals = 8;
  const double end = static_cast<double>(std::max<std::uint64_t>(end_ns, 1));
  const double begin = static_cast<double>(begin_ns);
  // Round steps in minutes are not round in seconds, because a minute has 60: from ten minutes on, count in minutes.
  const Unit unit =
      unit_for(end, {{1, "ns"}, {1e3, "\xC2\xB5s"}, {1e6, "ms"}, {1e9, "s"}, {600e9, "min"}, {36000e9, "h"}});
  const double unit_ns = unit.first == 600e9 ? 60e9 : unit.first == 36000e9 ? 3600e9 : unit.first;
  const double step = round_step(std::max(end - begin, 1.0) / unit_ns / kIntervals);
  std::vector<Tick> ticks;
  for (auto index = static_cast<std::size_t>(std::ceil(begin / unit_ns / step));
       static_cast<double>(index) * step * unit_ns <= end * (1 + 1e-9); ++index) {
    ticks.push_back({static_cast<double>(index) * step * unit_ns, label(index, step, unit)});
  }
  return ticks;
}

std::vector<Tick> clock_ticks(std::uint64_t begin_wall_ns, std::uint64_t duration_ns) {
  constexpr std::uint64_t kIntervals = 8;
  constexpr std::uint64_t kSecondNs = 1'000'000'000;
  constexpr std::uint64_t kDay = 86'400;
  std::uint64_t step = 28 * kDay;
  for (const std::uint64_t round :
       {1U,    2U,    5U,    10U,     15U,     30U,     60U,     120U,     300U,     600U,      900U,
        1800U, 3600U, 7200U, 10'800U, 21'600U, 43'200U, 86'400U, 172'800U, 604'800U, 1'209'600U}) {
    if (round * kSecondNs < duration_ns / kIntervals) continue;
    step = round;
    break;
  }
  while (step < duration_ns / kSecondNs / kIntervals) step *= 2;
  std::vector<Tick> ticks;
  for (std::uint64_t at = (begin_wall_ns + step * kSecondNs - 1) / (step * kSecondNs) * step;
       at * kSecondNs - begin_wall_ns <= duration_ns; at += step) {
    const std::tm time = fmt::gmtime(static_cast<std::time_t>(at));
    const std::string day = fmt::format("{:%Y-%m-%d}", time);
    const std::string clock = step < 60 ? fmt::format("{:%H:%M:%S}", time) : fmt::format("{:%H:%M}", time);
    std::string label = clock;
    if (ticks.empty()) label = fmt::format("{} {}", day, clock);
    if (at % kDay == 0) label = day;
    ticks.push_back({static_cast<double>(at * kSecondNs - begin_wall_ns), std::move(label)});
  }
  return ticks;
}

std::vector<Tick> number_ticks(double lowest, double highest) {
  constexpr double kIntervals = 4;
  constexpr int kMaxTicks = 16;
  constexpr double kLargest = 1e300;
  constexpr double kSmallest = 1e-305;
  lowest = std::clamp(lowest, -kLargest, kLargest);
  highest = std::clamp(highest, -kLargest, kLargest);
  const double middle = (lowest + highest) / 2;
  // Room around a line that is level, and around differences that a double hardly has.
  if (!(highest - lowest > std::max(std::abs(middle) * 1e-9, kSmallest))) {
    const double room = std::abs(middle) > kSmallest ? std::abs(middle) * 0.1 : 1;
    lowest = middle - room;
    highest = middle + room;
  }
  const double step = round_step((highest - lowest) / kIntervals);
  const double first = std::floor(lowest / step);
  std::vector<Tick> ticks;
  for (int n = 0; n < kMaxTicks; ++n) {
    const double value = (first + n) * step;
    ticks.push_back({value, fmt::format("{:.6g}", value == 0 ? 0.0 : value)});
    if (ticks.size() > 1 && value >= highest) break;
  }
  return ticks;
}

}  // namespace tidemark
