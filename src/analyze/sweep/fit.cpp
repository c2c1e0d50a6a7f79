#include "analyze/sweep/fit.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tidemark {
namespace {

// Maximum factor between a trial and the largest value that fits while no upper bound is known: predictions from few
// trials are unreliable far away, and a program may need as much more host memory.
constexpr double kFurthest = 32;
constexpr double kFirstStep = 4;  // from the first value to the second

bool fits(const FitTrial& trial) {
  return trial.result.fits.value_or(false);
}

// A trial. Its shape is taken from the allocated bytes: used bytes grow in steps.
struct Point {
  double value = 0;
  double bytes = 0;
  double used = 0;
};

// At most three of the fitting trials, the largest value first; each well below the one before, because between near
// ones the rounding of sizes exceeds the growth.
std::vector<Point> points_of(const std::vector<FitTrial>& trials) {
  std::vector<Point> all;
  for (const FitTrial& trial : trials) {
    if (!fits(trial) || !trial.result.peak_allocated_bytes) continue;
    const std::uint64_t bytes = *trial.result.peak_allocated_bytes;
    all.push_back({static_cast<double>(trial.value), static_cast<double>(bytes),
                   static_cast<double>(trial.result.used_bytes().value_or(bytes))});
  }
  std::sort(all.begin(), all.end(), [](const Point& a, const Point& b) { return a.value > b.value; });
  std::vector<Point> chosen;
  for (const Point& point : all) {
    const bool far =
        chosen.empty() || point.value <= 0.75 * chosen.back().value || point.bytes <= 0.95 * chosen.back().bytes;
    if (far && chosen.size() < 3) chosen.push_back(point);
  }
  return chosen;
}

// The value at which the first point's use reaches `limit`: by the polynomial through the points (Newton's divided
// differences), scaled by the ratio of used to allocated bytes between the first two. nullopt if it does not grow.
std::optional<double> value_at_limit(const std::vector<Point>& points, double limit) {
  if (points.size() < 2) return std::nullopt;
  const auto slope = [&](std::size_t a, std::size_t b) {
    return (points[a].bytes - points[b].bytes) / (points[a].value - points[b].value);
  };
  const double linear = slope(0, 1);
  if (linear <= 0) return std::nullopt;
  const double used_for_each = (points[0].used - points[1].used) / (points[0].bytes - points[1].bytes);
  const double room = std::max(0.0, limit - points[0].used) / std::max(1.0, used_for_each);
  const double curvature = points.size() < 3 ? 0 : (linear - slope(1, 2)) / (points[0].value - points[2].value);
  if (curvature <= 0) return points[0].value + room / linear;
  // room = d * (linear + curvature * (d + points[0] - points[1])), for d beyond the first point.
  const double b = linear + curvature * (points[0].value - points[1].value);
  return points[0].value + 2 * room / (b + std::sqrt(b * b + 4 * curvature * room));
}

}  // namespace

std::optional<std::uint64_t> Fit::largest() const {
  std::optional<std::uint64_t> found;
  for (const FitTrial& trial : trials) {
    if (fits(trial)) found = std::max(found.value_or(0), trial.value);
  }
  return found;
}

bool Fit::monotone() const {
  std::vector<const FitTrial*> sorted;
  for (const FitTrial& trial : trials) {
    if (fits(trial)) sorted.push_back(&trial);
  }
  std::sort(sorted.begin(), sorted.end(), [](const FitTrial* a, const FitTrial* b) { return a->value < b->value; });
  return std::is_sorted(sorted.begin(), sorted.end(), [](const FitTrial* a, const FitTrial* b) {
    return a->result.peak_allocated_bytes.value_or(0) < b->result.peak_allocated_bytes.value_or(0);
  });
}

std::optional<std::uint64_t> next_value(const Fit& fit) {
  if (fit.trials.empty()) return fit.range.low;
  // In numbers of steps of the range.
  const auto index_of = [&](std::uint64_t value) { return (value - fit.range.low) / fit.range.step; };
  const auto value_at = [&](std::uint64_t index) { return fit.range.low + index * fit.range.step; };
  const std::uint64_t count = index_of(fit.range.high) + 1;

  const FitTrial* below = nullptr;            // the largest that fits
  std::uint64_t above = count;                // the smallest that does not
  std::uint64_t unknown = count;              // values between them
  std::vector<std::uint64_t> unknown_before;  // each trial
  for (const FitTrial& trial : fit.trials) {
    unknown_before.push_back(unknown);
    if (!fits(trial)) {
      above = std::min(above, index_of(trial.value));
    } else if (below == nullptr || trial.value > below->value) {
      below = &trial;
    }
    unknown = above - std::min(above, below == nullptr ? 0 : index_of(below->value) + 1);
  }
  if (below == nullptr || unknown == 0) return std::nullopt;
  const std::uint64_t least = above - unknown;
  const std::uint64_t most = above - 1;
  const std::uint64_t middle = least + (most - least) / 2;
  const bool open = above == count;  // no upper bound is known
  const auto within = [&](double value) {
    const auto lowest = static_cast<double>(value_at(least));
    double highest = static_cast<double>(value_at(most));
    if (open) highest = std::clamp(static_cast<double>(below->value) * kFurthest, lowest, highest);
    return value_at(index_of(static_cast<std::uint64_t>(std::clamp(value, lowest, highest))));
  };

  const auto reached = value_at_limit(points_of(fit.trials), static_cast<double>(fit.limit_bytes));
  if (!reached && !open) return value_at(middle);
  if (!reached) return within(static_cast<double>(below->value) * (fit.trials.size() == 1 ? kFirstStep : kFurthest));
  // Misleading predictions: a limit beyond a value known not to fit, or trials that hardly narrow the interval.
  const bool misled = !open && *reached >= static_cast<double>(value_at(above));
  const bool by_one = unknown_before.size() > 2 && fits(fit.trials.back()) && unknown_before.back() == unknown + 1;
  const bool creeping = by_one || (unknown_before.size() > 2 && unknown > unknown_before.end()[-2] / 2);
  if (open) return within(creeping ? std::max(*reached, static_cast<double>(value_at(least)) * 1.25) : *reached);
  return misled || creeping ? value_at(middle) : within(*reached);
}

bool Fit::all_alike() const {
  return trials.size() > 1 && std::all_of(trials.begin(), trials.end(), [this](const FitTrial& trial) {
           return trial.result.peak_allocated_bytes && trial.result.out_of_memory == trials[0].result.out_of_memory &&
                  trial.result.peak_allocated_bytes == trials[0].result.peak_allocated_bytes &&
                  trial.result.peak_reserved_bytes == trials[0].result.peak_reserved_bytes;
         });
}

void find_largest(Fit& fit, const std::function<std::optional<TrialResult>(std::uint64_t value)>& run) {
  while (const auto value = next_value(fit)) {
    auto result = run(*value);
    fit.stopped = !result;
    if (!result) return;
    fit.trials.push_back({*value, std::move(*result)});
  }
  // One more value shows whether the program heeds the argument at all.
  const std::uint64_t next = fit.range.low + fit.range.step;
  if (fit.trials.size() != 1 || fit.trials[0].result.fits != false || next > fit.range.high) return;
  if (auto result = run(next)) fit.trials.push_back({next, std::move(*result)});
}

}  // namespace tidemark
