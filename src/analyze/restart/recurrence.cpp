#include <algorithm>
#include <cmath>
#include <limits>

#include "analyze/common/moment.h"
#include "analyze/restart/restart.h"
#include "analyze/steps/training_steps.h"
#include "base/arithmetic.h"
#include "base/step_names.h"

namespace tidemark {
namespace {

// Each is what every start does: memory of the second one is that of the first and of the optimizer's state.
constexpr std::uint64_t kFirstSteps = 2;
// Peaks of steps that differ by less are as high: PyTorch rounds sizes, and caches differ.
constexpr double kAsHigh = 1.01;

const OutOfMemory* find_event(const Store& store, const OomFailure& failure, std::size_t& index) {
  for (index = store.out_of_memory.size(); index-- > 0;) {
    const OutOfMemory& event = store.out_of_memory[index];
    if (event.time_ns == failure.last_ns && store.devices[event.device].device == failure.device) return &event;
  }
  return nullptr;
}

// Whether the boundaries of steps are steps of the optimizer: a step's forward pass comes before its boundary.
bool ends_with_optimizer(const Store& store, const TrainingSteps& steps) {
  if (steps.source == TrainingSteps::Source::optimizer) return true;
  return steps.source == TrainingSteps::Source::annotation &&
         step_name_of(store.definitions.text(steps.mark)) == StepName::optimizer;
}

bool begins_at_mark(const Store& store, const TrainingSteps& steps) {
  if (steps.source != TrainingSteps::Source::annotation) return false;
  const StepName name = step_name_of(store.definitions.text(steps.mark));
  return name == StepName::planned || name == StepName::profiler_step;
}

// The step of the failure, and the peaks of the complete periods before it.
void count_steps_until(const Store& store, const Attribution& attribution, const OutOfMemory& event, std::size_t index,
                       FailureEvidence& evidence) {
  const TrainingSteps steps = find_training_steps(store);
  const auto begun = static_cast<std::size_t>(
      std::ranges::upper_bound(steps.starts, event.time_ns, {}, &TrainingSteps::Start::time_ns) - steps.starts.begin());
  const Phase phase = index < attribution.out_of_memory.size() ? attribution.out_of_memory[index].phase : Phase::other;
  std::uint64_t updates = 0;
  std::uint64_t backwards = 0;
  std::uint64_t forwards = 0;
  for (const PhaseSpan& span : attribution.phases) {
    if (span.from >= event.change_count) break;
    forwards += span.phase == Phase::forward ? 1 : 0;
    backwards += span.phase == Phase::backward ? 1 : 0;
    updates += span.phase == Phase::optimizer ? 1 : 0;
  }
  evidence.trained = backwards != 0 || updates != 0;
  evidence.ran_forward = forwards != 0;
  evidence.steps_after = steps.starts.size() - begun;
  evidence.steps_exact = begins_at_mark(store, steps);
  if (steps.source != TrainingSteps::Source::none) {
    evidence.steps_known = true;
    evidence.failed_step = begun + (ends_with_optimizer(store, steps) && phase != Phase::optimizer ? 1 : 0);
  } else if (evidence.trained) {
    // An optimizer may allocate nothing: then each backward pass is taken for a step. Backward passes without a known
    // forward pass between them are one.
    const std::uint64_t passes = updates != 0 ? updates : backwards;
    const bool inside = phase == (updates != 0 ? Phase::optimizer : Phase::backward);
    evidence.steps_known = passes < kFewestSteps && (updates != 0 || forwards != 0);  // more would have been found
    evidence.failed_step = passes + (inside ? 0 : 1);
  } else if (evidence.ran_forward) {
    evidence.steps_known = forwards == 1;  // several without a backward pass are no training
    evidence.failed_step = 1;
  }

  std::uint64_t live = 0;
  std::size_t step = 0;  // how many began
  double peak = 0;
  std::uint64_t births = 0;
  std::uint64_t deaths = 0;
  const Blocks& blocks = store.blocks;
  const std::uint64_t current = begun == 0 ? 0 : steps.starts[begun - 1].event_count;
  evidence.new_call_site = event.stack.valid();
  for (std::uint64_t change = 0; change < event.change_count; ++change) {
    while (step < begun && steps.starts[step].event_count <= change) {
      if (step != 0) evidence.step_peaks.push_back(peak);
      ++step;
      peak = static_cast<double>(live);
    }
    const LiveChange& now = store.live_changes[change];
    if (blocks.device[now.block.value] != event.device) continue;
    const std::uint64_t size = blocks.size[now.block.value];
    live = now.birth ? live + size : saturating_subtract(live, size);
    ++(now.birth ? births : deaths);
    peak = std::max(peak, static_cast<double>(live));
    const bool same_site = now.birth && change < current && blocks.stack[now.block.value] == event.stack;
    if (same_site) evidence.new_call_site = false;
  }
  for (; step < begun; ++step) {  // the failure is the first thing in its step
    if (step != 0) evidence.step_peaks.push_back(peak);
    peak = static_cast<double>(live);
  }
  evidence.need_bytes = saturating_add(live, event.requested);
  evidence.keeps_most = event.stack.valid() && 2 * deaths <= births;
}

void add_leaks(const OomFailure& failure, FailureEvidence& evidence) {
  for (const OomFinding& finding : failure.findings) {
    if (finding.cause == OomCause::leak) evidence.leaked_bytes = finding.bytes;
  }
  if (evidence.leaked_bytes == 0) return;
  std::uint64_t first = std::numeric_limits<std::uint32_t>::max();
  for (const LeakSite& site : failure.leaks) {
    const Slope& slope = site.growth.bytes_per_step;
    evidence.leak_bytes_per_step.value += slope.value;
    evidence.leak_bytes_per_step.low += slope.low;
    evidence.leak_bytes_per_step.high += slope.high;
    first = std::min<std::uint64_t>(first, site.growth.first_step);
  }
  evidence.leak_first_step = failure.leaks.empty() ? 0 : first + 1;
}

Recurrence answer(WillRecur will_recur, RestartReason reason, Confidence confidence) {
  Recurrence recurrence;
  recurrence.will_recur = will_recur;
  recurrence.reason = reason;
  recurrence.confidence = confidence;
  return recurrence;
}

void set_step(const FailureEvidence& evidence, Recurrence& recurrence) {
  if (!evidence.steps_known || !evidence.from_start) return;
  recurrence.at_step = evidence.failed_step;
  const std::uint64_t off = evidence.steps_exact ? 0 : 1;
  recurrence.earliest_step = std::max<std::uint64_t>(saturating_subtract(evidence.failed_step, off),
                                                     std::min<std::uint64_t>(evidence.failed_step, 1));
  recurrence.latest_step = evidence.failed_step + off;
}

// The step before passed: what has to leak is between the memory of the two. It leaks from its first step on, at a rate
// within the interval.
void set_leak_interval(const FailureEvidence& evidence, Recurrence& recurrence) {
  if (!recurrence.at_step) return;
  const Slope& rate = evidence.leak_bytes_per_step;
  const std::uint64_t first = std::min(evidence.leak_first_step, evidence.failed_step);
  const auto steps = static_cast<double>(evidence.failed_step - first);
  const bool bounded = rate.low > 0 && std::isfinite(rate.high) && rate.high >= rate.value;
  if (!bounded) {
    recurrence.earliest_step.reset();
    recurrence.latest_step.reset();
    return;
  }
  const auto after = [&](double slope) { return static_cast<double>(first) + steps * rate.value / slope; };
  const auto off = static_cast<double>(evidence.steps_exact ? 1 : 2);
  recurrence.earliest_step = static_cast<std::uint64_t>(std::max(0.0, std::floor(after(rate.high) - off)));
  recurrence.latest_step = static_cast<std::uint64_t>(std::ceil(after(rate.low) + off));
}

// As high as the trend of the earlier steps leads to expect.
bool is_growth_of_steps(const FailureEvidence& evidence) {
  constexpr std::size_t kFewest = 8;
  constexpr std::size_t kMost = 512;  // the trend takes a time that grows with their square
  const std::vector<double>& peaks = evidence.step_peaks;
  if (peaks.size() < kFewest) return false;
  const std::size_t apart = (peaks.size() + kMost - 1) / kMost;
  std::vector<double> some;
  for (std::size_t index = peaks.size() - 1;; index -= apart) {
    some.insert(some.begin(), peaks[index]);
    if (index < apart) break;
  }
  const Slope slope = theil_sen(some);
  if (!slope.rises()) return false;
  // Noise around one level may rise by chance: the rise has to be most of the difference between the steps.
  const double range = *std::ranges::max_element(some) - *std::ranges::min_element(some);
  return slope.value * static_cast<double>(some.size() - 1) > range / 2;
}

Recurrence decide_by_steps(const FailureEvidence& evidence) {
  const bool known = evidence.steps_known && evidence.from_start;
  if (!evidence.from_start && evidence.step_peaks.empty()) {
    return answer(WillRecur::unknown, RestartReason::not_recorded, Confidence::unknown);
  }
  const bool before_training = !evidence.ran_forward && !evidence.trained && evidence.failed_step == 0;
  if (evidence.from_start && before_training && evidence.keeps_most) {
    return answer(WillRecur::yes, RestartReason::setup, Confidence::estimated);
  }
  if (known && evidence.failed_step != 0 && evidence.failed_step <= kFirstSteps) {
    Recurrence recurrence = answer(WillRecur::yes, RestartReason::first_steps, Confidence::estimated);
    set_step(evidence, recurrence);
    return recurrence;
  }
  if (evidence.step_peaks.empty()) {
    return answer(WillRecur::unknown, RestartReason::not_recorded, Confidence::unknown);
  }
  const double highest = *std::ranges::max_element(evidence.step_peaks);
  if (static_cast<double>(evidence.need_bytes) <= highest) {
    return answer(WillRecur::unknown, RestartReason::memory_of_others, Confidence::unknown);
  }
  Recurrence recurrence;
  if (evidence.new_call_site || evidence.outside_training) {
    recurrence = answer(WillRecur::yes, RestartReason::other_phase, Confidence::estimated);
  } else if (is_growth_of_steps(evidence)) {
    recurrence = answer(WillRecur::yes, RestartReason::growing_steps, Confidence::estimated);
  } else if (static_cast<double>(evidence.need_bytes) > kAsHigh * highest) {
    recurrence = answer(WillRecur::unknown, RestartReason::larger_step, Confidence::unknown);
  } else {
    recurrence = answer(WillRecur::unknown, RestartReason::memory_of_others, Confidence::unknown);
    return recurrence;
  }
  set_step(evidence, recurrence);
  return recurrence;
}

}  // namespace

FailureEvidence examine_failure(const Store& store, const Attribution& attribution, const OomFailure& failure) {
  FailureEvidence evidence;
  std::size_t index = 0;
  const OutOfMemory* event = find_event(store, failure, index);
  if (event == nullptr) return evidence;
  const std::uint64_t before = store.devices[event->device].baseline_bytes.value_or(0);
  evidence.from_start =
      !store.window_began_ns && lead_in_of(store).end_ns == 0 && before == 0 && store.segment_changes_before == 0;
  count_steps_until(store, attribution, *event, index, evidence);
  if (!failure.findings.empty()) {
    evidence.cause = failure.findings.front().cause;
    evidence.cause_is_certain = failure.findings.front().certain;
  }
  add_leaks(failure, evidence);
  evidence.outside_training = std::ranges::any_of(failure.advice, [](const OomAdvice& advice) {
    return advice.kind == AdviceKind::inference_with_autograd || advice.kind == AdviceKind::checkpoint_copies ||
           advice.kind == AdviceKind::collected_results;
  });
  evidence.of_batch_bytes = failure.of_batch.value_or(0);
  if (index < attribution.out_of_memory.size() && grows_with_batch(attribution.out_of_memory[index].category)) {
    evidence.of_batch_bytes += event->requested;
  }
  return evidence;
}

Recurrence decide_recurrence(const FailureEvidence& evidence) {
  if (evidence.steps_after != 0) return answer(WillRecur::no, RestartReason::survived, Confidence::estimated);
  if (evidence.leaked_bytes != 0 && evidence.leak_bytes_per_step.value > 0 &&
      (evidence.cause == OomCause::leak || !evidence.cause_is_certain)) {
    const Confidence confidence =
        evidence.cause == OomCause::leak && evidence.cause_is_certain ? Confidence::exact : Confidence::estimated;
    Recurrence recurrence = answer(WillRecur::yes, RestartReason::leak, confidence);
    set_step(evidence, recurrence);
    set_leak_interval(evidence, recurrence);
    return recurrence;
  }
  if (evidence.cause == OomCause::other_process && evidence.cause_is_certain) {
    return answer(WillRecur::unknown, RestartReason::memory_of_others, Confidence::unknown);
  }
  if (evidence.cause == OomCause::fragmentation && evidence.cause_is_certain) {
    Recurrence recurrence = answer(WillRecur::yes, RestartReason::fragmentation, Confidence::estimated);
    set_step(evidence, recurrence);
    return recurrence;
  }
  return decide_by_steps(evidence);
}

}  // namespace tidemark
