#include "analyze/leaks/series_growth.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "analyze/leaks/grown_steps.h"

namespace tidemark {
namespace {

constexpr double kFreeThatCounts = 0.1;  // of the growth: less that is freed says nothing about the age of the rest
constexpr double kLaterHalf = 0.76;      // of what the earlier half left, that the later one leaves at least
constexpr double kLaterHalfSure = 0.9;   // likewise, where the difference is no chance
constexpr double kSureDifference = 3;    // standard errors
constexpr double kBegan = 0.2;           // of the growth, that is missing where it began late
constexpr std::size_t kRisesForProof = 3;

// How old what is freed gets: at each fall of the series, for how many steps it was above what it fell to.
struct FreedAges {
  std::uint32_t oldest = 0;
  bool proof = false;  // something outlived several frees: it rose above what they fell to
};

FreedAges freed_ages(std::span<const double> held, std::uint32_t warmup, double least) {
  struct Level {
    std::uint32_t since = 0;
    double bytes = 0;
  };
  std::vector<Level> levels;  // the series has not been below `bytes` since; increasing
  FreedAges freed;
  double trough = 0;
  std::size_t rises = 0;
  for (std::uint32_t step = warmup; step < held.size(); ++step) {
    std::uint32_t since = step;
    for (; !levels.empty() && levels.back().bytes >= held[step]; levels.pop_back()) since = levels.back().since;
    if (step > warmup && held[step - 1] > held[step] + least) {
      freed.oldest = std::max(freed.oldest, step - since);
      if (trough > 0 && held[step] > trough + least) ++rises;
      trough = held[step];
    }
    levels.push_back({since, held[step]});
  }
  freed.proof = rises >= kRisesForProof;
  return freed;
}

// The square of the standard error of the mean.
double squared_error_of(std::span<const double> values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto count = static_cast<double>(values.size());
  return squares / std::max(1.0, count - 1) / count;
}

bool slows_down(std::span<const double> left) {
  const auto early = left.first(left.size() / 2);
  const auto late = left.subspan(left.size() / 2);
  const double before = mean_of(early);
  const double after = mean_of(late);
  if (after < kLaterHalf * before) return true;
  const double error = std::sqrt(squared_error_of(early) + squared_error_of(late));
  return after < kLaterHalfSure * before && before - after > kSureDifference * error;
}

// How many steps of equal growth would say as much (Kish's effective sample size): one, where one left nearly all.
double effective_steps(std::span<const double> left) {
  double sum = 0;
  double squares = 0;
  for (const double bytes : left) {
    sum += bytes;
    squares += bytes * bytes;
  }
  return squares > 0 ? sum * sum / squares : 0;
}

}  // namespace

std::optional<Growth> find_series_growth(std::span<const double> held, std::uint32_t warmup, double least) {
  const auto count = static_cast<std::uint32_t>(held.size());
  if (count < warmup + kMinAnalyzedSteps + 2) return std::nullopt;
  std::vector<double> lasting(held.begin(), held.end());  // the least from each step on
  for (std::uint32_t step = count - 1; step-- > 0;) lasting[step] = std::min(lasting[step], lasting[step + 1]);
  const double all = lasting.back() - lasting[warmup];
  const FreedAges freed = freed_ages(held, warmup, std::max(least, kFreeThatCounts * all));
  const std::uint32_t young = young_age(freed.oldest, freed.proof);
  if (count < warmup + young + kMinAnalyzedSteps + 1) return std::nullopt;
  const std::uint32_t end = count - young;

  std::vector<std::uint32_t> grown;
  double reached = lasting[warmup];
  Growth growth;
  growth.released_after = freed.oldest;
  for (std::uint32_t step = warmup + 1; step < count; ++step) {
    if (lasting[step] <= reached + least) continue;
    reached = lasting[step];
    growth.last_step = step;
    if (step < end) grown.push_back(step);
  }
  if (grown.size() < 2) return std::nullopt;
  const GrownSteps steps = {grown, warmup, end};
  const std::uint32_t begin = std::max(warmup + 1, steps.begin());
  std::vector<double> left;
  for (std::uint32_t step = begin; step < end; ++step) left.push_back(lasting[step] - lasting[step - 1]);
  growth.analyzed_steps = end - begin;
  growth.bytes_per_step = mean_with_interval(left);
  growth.bytes_per_step.low = std::max(growth.bytes_per_step.low, 0.0);
  growth.grown_steps = static_cast<std::uint32_t>(grown.size());
  growth.first_step = grown.front();
  growth.classification = steps.classify();
  if (growth.classification != GrowthClass::leak) return growth;
  // The step at which it began to grow says nothing about how fast.
  const std::size_t late = std::max<std::size_t>(
      find_bend(std::span(lasting).subspan(begin - 1, end - begin + 1), kBegan), grown.front() + 1 - begin);
  const auto since = std::span(left).subspan(std::min(late, left.size()));
  growth.first_step = std::max(growth.first_step, begin + static_cast<std::uint32_t>(late) - 1);
  if (since.size() < kMinAnalyzedSteps - 1 || effective_steps(left) < kMinGrownSteps - 1 ||
      effective_steps(since) < kMinGrownSteps - 1) {
    growth.classification = GrowthClass::too_few;
  } else if (slows_down(since)) {
    growth.classification = GrowthClass::slowing;
  }
  return growth;
}

}  // namespace tidemark
