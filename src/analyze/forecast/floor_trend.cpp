#include "analyze/forecast/floor_trend.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "analyze/common/trend.h"

namespace tidemark {
namespace {

constexpr std::size_t kFewestFloors = 10;
constexpr double kFloorsRise = 0.4;      // Kendall's tau
constexpr double kFloorsSurelyRise = 3;  // times its deviation where nothing rises
constexpr double kLaterRise = 0.8;  // of the rise from the first third to the second, that the next one has at least
constexpr double kFirstRise = 0.3;  // of the whole rise
constexpr double kLargestFloorJump = 0.4;  // of the growth

// At one rate: the last third is as much higher as the second one is, or more.
bool rises_evenly(std::span<const double> floors) {
  const std::size_t third = floors.size() / 3;
  const double first = mean_of(floors.first(third));
  const double second = mean_of(floors.subspan(third, floors.size() - 2 * third));
  const double last = mean_of(floors.last(third));
  return last > second && last - second >= kLaterRise * (second - first) &&
         second - first >= kFirstRise * (last - first);
}

// Of the medians of three, so that a single value is none.
double largest_jump(std::span<const double> floors) {
  const auto middle = [&](std::size_t at) {
    const double low = std::min(floors[at - 1], floors[at]);
    const double high = std::max(floors[at - 1], floors[at]);
    return std::clamp(floors[at + 1], low, high);
  };
  double jump = 0;
  for (std::size_t at = 2; at + 1 < floors.size(); ++at) jump = std::max(jump, middle(at) - middle(at - 1));
  return jump;
}

}  // namespace

std::optional<Growth> find_floor_trend(std::span<const double> floors) {
  const std::size_t count = floors.size();
  if (count < kFewestFloors || std::ranges::is_sorted(floors) || !rises_evenly(floors)) return std::nullopt;
  if (kendall_tau(floors) < std::max(kFloorsRise, kFloorsSurelyRise * kendall_tau_deviation(count)))
    return std::nullopt;
  Growth growth;
  growth.bytes_per_step = theil_sen(floors);
  if (growth.bytes_per_step.low <= 0) return std::nullopt;
  if (largest_jump(floors) > kLargestFloorJump * growth.bytes_per_step.value * static_cast<double>(count - 1)) {
    return std::nullopt;
  }
  growth.analyzed_steps = static_cast<std::uint32_t>(count);
  double highest = floors.front();
  for (std::uint32_t cell = 1; cell < count; ++cell) {
    if (floors[cell] <= highest) continue;
    highest = floors[cell];
    if (growth.grown_steps++ == 0) growth.first_step = cell;
    growth.last_step = cell;
  }
  return growth;
}

}  // namespace tidemark
