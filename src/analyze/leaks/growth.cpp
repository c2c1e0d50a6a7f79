#include "analyze/leaks/growth.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "analyze/steps/training_steps.h"

namespace tidemark {

namespace {

// Share of a call site's long-lived blocks that may be freed later than the others without changing the usual age.
constexpr double kUnusual = 0.05;
constexpr std::size_t kProof = 3;        // blocks that outlived a free of others, to be proof
constexpr std::size_t kPerLateFree = 4;  // blocks that must be left for each one that was freed when as old as they are
constexpr std::uint32_t kSlower = 3;
constexpr double kSteadyRise = 0.8;  // Kendall's tau of a replaced block's size
constexpr double kWorkRises = 0.5;   // Kendall's tau of the work in a step
constexpr std::size_t kMaxValues = 200;
constexpr std::uint32_t kFewestWarmup = 2;
constexpr std::uint64_t kWarmupPart = 10;  // a tenth

std::uint32_t round_down(double value) {
  return static_cast<std::uint32_t>(value);
}

// Frees of a group, and their delay.
struct FreeHistory {
  std::uint32_t usual_age = 0;  // boundaries lived through by the oldest usual one; 0 = nothing is freed
  std::uint32_t last_step = 0;  // the step of the last one
  std::size_t outlived = 0;     // blocks born before that step and still there
  std::size_t survivors = 0;
  std::vector<std::uint32_t> ages;  // of all that were freed, in no order

  [[nodiscard]] std::size_t later_than(std::uint32_t age) const {
    return static_cast<std::size_t>(std::count_if(ages.begin(), ages.end(), [&](auto other) { return other > age; }));
  }
};

// Only blocks that lived through a whole step count: others are the work of a step.
FreeHistory free_history_of(std::span<const StepSpan> spans, std::uint32_t boundaries, std::uint32_t warmup) {
  FreeHistory frees;
  std::vector<std::uint32_t>& ages = frees.ages;
  for (const StepSpan& span : spans) {
    if (span.first == 0 || span.boundaries() < 2 || span.last + 1 == boundaries) continue;
    ages.push_back(span.boundaries());
    frees.last_step = std::max(frees.last_step, span.last);
  }
  for (const StepSpan& span : spans) {
    if (span.first <= warmup || span.boundaries() < 2 || span.last + 1 != boundaries) continue;
    ++frees.survivors;
    if (span.first - 1 < frees.last_step) ++frees.outlived;
  }
  const auto unusual = round_down(kUnusual * static_cast<double>(ages.size() + frees.survivors));
  if (ages.size() > unusual) {
    const auto oldest = ages.end() - 1 - unusual;
    std::nth_element(ages.begin(), oldest, ages.end());
    frees.usual_age = *oldest;
  }
  return frees;
}

// Bytes and blocks left by each of the analyzed steps.
struct RetainedPerStep {
  std::vector<double> bytes;
  std::vector<std::uint32_t> blocks;
};

RetainedPerStep retained_per_step(std::span<const StepSpan> spans, std::uint32_t boundaries, std::uint32_t begin,
                                  std::uint32_t end) {
  RetainedPerStep retained{std::vector<double>(end - begin), std::vector<std::uint32_t>(end - begin)};
  for (const StepSpan& span : spans) {
    if (span.last + 1 != boundaries || span.first <= begin || span.first - 1 >= end) continue;
    retained.bytes[span.first - 1 - begin] += static_cast<double>(span.bytes);
    ++retained.blocks[span.first - 1 - begin];
  }
  return retained;
}

std::vector<double> thinned(std::span<const double> values, std::size_t stride) {
  std::vector<double> kept;
  for (std::size_t index = 0; index < values.size(); index += stride) kept.push_back(values[index]);
  return kept;
}

// The steps between one growth and the next, if constant and at least two; else 0.
std::uint32_t period_of(std::span<const std::uint32_t> grown) {
  if (grown.size() < kMinGrownSteps) return 0;
  const std::uint32_t period = grown[1] - grown[0];
  for (std::size_t n = 1; n < grown.size(); ++n) {
    if (grown[n] - grown[n - 1] != period) return 0;
  }
  return period < 2 ? 0 : period;
}

constexpr double kFreeThatCounts = 0.1;  // of the growth: smaller frees are no evidence of the age of the rest
constexpr double kLaterHalf = 0.76;      // minimum growth of the later half, relative to the earlier half
constexpr double kLaterHalfSure = 0.9;   // the same, if the difference is significant
constexpr double kSureDifference = 3;    // standard errors
constexpr double kBegan = 0.2;           // of the growth: missing part if it began late
constexpr std::size_t kRisesForProof = 3;

// Age of freed memory: at each fall of the series, the number of steps for which it was above the new value.
struct FreedAges {
  std::uint32_t oldest = 0;
  bool proof = false;  // something outlived several frees: it rose above the values after them
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

// The equivalent number of steps with equal growth (Kish's effective sample size): one if a single step left nearly
// all.
double effective_steps(std::span<const double> left) {
  double sum = 0;
  double squares = 0;
  for (const double bytes : left) {
    sum += bytes;
    squares += bytes * bytes;
  }
  return squares > 0 ? sum * sum / squares : 0;
}

// A block has survived when its age exceeds the age of freed blocks by this factor; by more if no block is known to
// have outlived one of those frees: the next garbage collection may free all of them.
constexpr double kOlder = 1.5;
constexpr double kOlderWithoutProof = 3;
constexpr std::uint32_t kPause = 2;
constexpr std::uint32_t kRarer = 3;

}  // namespace

std::uint32_t default_warmup(std::size_t steps) {
  return std::max<std::uint32_t>(kFewestWarmup, static_cast<std::uint32_t>(steps / kWarmupPart));
}

std::uint32_t default_warmup(const Store& store, std::size_t steps) {
  const LeadIn lead_in = lead_in_of(store);  // the number of earlier steps is unknown: a share of the time instead
  const bool warm = lead_in.end_ns != 0 && lead_in.began_ns >= lead_in.whole_ns / kWarmupPart;
  return warm ? 0 : default_warmup(steps);
}

std::uint32_t analyzed_steps(std::uint32_t boundaries, std::uint32_t warmup) {
  return boundaries < 2 || boundaries - 2 < warmup ? 0 : boundaries - 2 - warmup;
}

std::optional<Growth> find_retained_growth(std::span<const StepSpan> spans, std::uint32_t boundaries,
                                           std::uint32_t warmup) {
  const FreeHistory frees = free_history_of(spans, boundaries, warmup);
  if (frees.survivors < 2) return std::nullopt;
  Growth growth;
  growth.released_after = frees.usual_age;
  const bool proof = frees.outlived >= kProof;
  const std::uint32_t young = young_age(frees.usual_age, proof);
  const std::uint32_t end = boundaries > young + 1 ? boundaries - young - 1 : 0;  // the first step not values_by_step
  std::vector<std::uint32_t> grown;
  for (const StepSpan& span : spans) {
    if (span.last + 1 != boundaries || span.first <= warmup || span.boundaries() < 2) continue;
    growth.last_step = std::max(growth.last_step, span.first - 1);
    grown.push_back(span.first - 1);
  }
  std::sort(grown.begin(), grown.end());
  grown.erase(std::unique(grown.begin(), grown.end()), grown.end());
  growth.first_step = grown.front();
  if (end < warmup + kMinAnalyzedSteps) {
    if (!proof || grown.size() < kMinGrownSteps) return std::nullopt;
    growth.classification = GrowthClass::unclear;
    return growth;
  }
  grown.erase(std::lower_bound(grown.begin(), grown.end(), end), grown.end());
  if (grown.size() < 2) return std::nullopt;

  const GrownSteps steps = {grown, warmup, end};
  const std::uint32_t begin = steps.begin();
  const RetainedPerStep retained = retained_per_step(spans, boundaries, begin, end);
  growth.bytes_per_step = mean_with_interval(retained.bytes);
  growth.bytes_per_step.low = std::max(growth.bytes_per_step.low, 0.0);
  const auto blocks = std::accumulate(retained.blocks.begin(), retained.blocks.end(), std::size_t{0});
  growth.analyzed_steps = end - begin;
  growth.blocks_per_step = static_cast<double>(blocks) / growth.analyzed_steps;
  growth.grown_steps = static_cast<std::uint32_t>(grown.size());
  growth.every_steps = period_of(grown);
  if (growth.every_steps != 0) {
    // The mean over all steps depends on the position of the first and the last one within a period.
    std::vector<double> rates;
    for (const std::uint32_t step : grown) rates.push_back(retained.bytes[step - begin] / growth.every_steps);
    growth.bytes_per_step = mean_with_interval(rates);
  }

  growth.classification = steps.classify();
  if (growth.classification == GrowthClass::leak && frees.later_than(young) * kPerLateFree >= blocks) {
    growth.classification = GrowthClass::unclear;
  }
  return growth;
}

std::optional<Growth> find_replacement_growth(std::span<const StepSpan> spans, std::uint32_t boundaries,
                                              std::uint32_t warmup, std::span<const double> work) {
  if (analyzed_steps(boundaries, warmup) < kMinAnalyzedSteps) return std::nullopt;
  std::vector<double> held(boundaries + 1);
  std::size_t replaced = 0;
  std::size_t others = 0;
  for (const StepSpan& span : spans) {
    held[span.first] += static_cast<double>(span.bytes);
    held[span.last + 1] -= static_cast<double>(span.bytes);
    if (span.first > warmup && span.last + 1 != boundaries) ++(span.boundaries() == 1 ? replaced : others);
  }
  for (std::size_t index = 1; index < held.size(); ++index) held[index] += held[index - 1];
  if (replaced < kMinAnalyzedSteps || others > replaced) return std::nullopt;

  const std::span<const double> values_by_step = std::span(held).subspan(warmup + 1, boundaries - warmup - 1);
  if (values_by_step.back() <= values_by_step.front() ||
      *std::min_element(values_by_step.begin(), values_by_step.end()) <= 0)
    return std::nullopt;
  const std::size_t stride = 1 + values_by_step.size() / kMaxValues;
  const std::vector<double> values = thinned(values_by_step, stride);
  if (kendall_tau(values) < kSteadyRise) return std::nullopt;
  Growth growth;
  growth.kind = GrowthKind::replaced;
  growth.bytes_per_step = theil_sen(values);
  for (double* bound : {&growth.bytes_per_step.value, &growth.bytes_per_step.low, &growth.bytes_per_step.high}) {
    *bound /= static_cast<double>(stride);
  }
  if (growth.bytes_per_step.low <= 0) return std::nullopt;
  growth.analyzed_steps = static_cast<std::uint32_t>(values_by_step.size() - 1);
  for (std::size_t index = 1; index < values_by_step.size(); ++index) {
    if (values_by_step[index] <= values_by_step[index - 1]) continue;
    if (growth.grown_steps++ == 0) growth.first_step = static_cast<std::uint32_t>(warmup + index);
    growth.last_step = static_cast<std::uint32_t>(warmup + index);
  }
  const double middle = values_by_step[values_by_step.size() / 2];
  if (kendall_tau(thinned(work.subspan(warmup, boundaries - 1 - warmup), stride)) >= kWorkRises) {
    growth.classification = GrowthClass::with_work;
  } else if (growth.grown_steps < kMinGrownSteps) {
    growth.classification = GrowthClass::too_few;
  } else if ((values_by_step.back() - middle) * kSlower < middle - values_by_step.front()) {
    growth.classification = GrowthClass::slowing;
  }
  return growth;
}

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
  // The step at which growth began does not count for its rate.
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

std::uint32_t GrownSteps::long_pause() const {
  std::uint32_t pause = 1;
  for (std::size_t index = 1; index < grown.size(); ++index) pause = std::max(pause, grown[index] - grown[index - 1]);
  return kPause * (pause + 1);
}

std::uint32_t GrownSteps::begin() const {
  return grown.front() - warmup > long_pause() ? grown.front() : warmup;
}

GrowthClass GrownSteps::classify() const {
  const auto middle = std::lower_bound(grown.begin(), grown.end(), warmup + (end - warmup) / 2);
  const auto early = static_cast<std::uint32_t>(middle - grown.begin());
  const auto late = static_cast<std::uint32_t>(grown.end() - middle);
  if (end - 1 - grown.back() > long_pause()) return GrowthClass::stopped;
  if (grown.size() < kMinGrownSteps || end - grown.front() < kMinAnalyzedSteps) return GrowthClass::too_few;
  return late * kRarer < early ? GrowthClass::slowing : GrowthClass::leak;
}

std::uint32_t young_age(std::uint32_t usual_age, bool proof) {
  const double factor = proof || usual_age == 0 ? kOlder : kOlderWithoutProof;
  return std::max(1U, static_cast<std::uint32_t>(usual_age * factor));
}

}  // namespace tidemark
