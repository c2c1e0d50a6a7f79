#include "analyze/leaks/growth.h"

#include <algorithm>
#include <numeric>

#include "analyze/leaks/grown_steps.h"
#include "analyze/steps/lead_in.h"

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

// What is freed, and how late.
struct FreeHistory {
  std::uint32_t usual_age = 0;  // boundaries lived through by the oldest that is not unusual; 0 = nothing is freed
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

// What each of the analyzed steps left, bytes and blocks.
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

}  // namespace

std::uint32_t default_warmup(std::size_t steps) {
  return std::max<std::uint32_t>(kFewestWarmup, static_cast<std::uint32_t>(steps / kWarmupPart));
}

std::uint32_t default_warmup(const Store& store, std::size_t steps) {
  const LeadIn lead_in = lead_in_of(store);  // how many steps were before it nobody knows: a part of the time instead
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

}  // namespace tidemark
