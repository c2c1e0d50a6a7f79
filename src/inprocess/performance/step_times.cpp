#include "inprocess/performance/step_times.h"

#include <chrono>

namespace tidemark {
namespace {

constexpr double kNs = 1e-9;

}  // namespace

std::int64_t StepTimes::now_ns() {
  const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
  return now == 0 ? 1 : now;
}

void StepTimes::part_began(std::int64_t now_ns) noexcept {
  std::int64_t none = 0;
  if (began_ns_.load(std::memory_order_relaxed) == 0) began_ns_.compare_exchange_strong(none, now_ns);
}

void StepTimes::part_ended(StepPart part, std::int64_t began_ns, std::int64_t now_ns) noexcept {
  const std::int64_t took = now_ns - began_ns;
  parts_[static_cast<std::size_t>(part)].add(static_cast<double>(took) * kNs);
  if (part == StepPart::data) waited_ns_.fetch_add(took, std::memory_order_relaxed);
}

void StepTimes::step_ended(std::uint64_t samples, std::int64_t now_ns) noexcept {
  const std::int64_t began = began_ns_.exchange(now_ns);
  const std::int64_t waited = waited_ns_.exchange(0);
  steps_.fetch_add(1, std::memory_order_relaxed);
  samples_.fetch_add(samples, std::memory_order_relaxed);
  if (began == 0) return;
  const std::int64_t took = now_ns - began;
  step_seconds_.add(static_cast<double>(took) * kNs);
  if (samples > 0) {
    timed_samples_.fetch_add(samples, std::memory_order_relaxed);
    timed_sample_ns_.fetch_add(took, std::memory_order_relaxed);
  }
  if (static_cast<double>(waited) > kStalledShare * static_cast<double>(took)) {
    stalled_steps_.fetch_add(1, std::memory_order_relaxed);
    stalled_ns_.fetch_add(waited, std::memory_order_relaxed);
  }
}

StepSummary StepTimes::summary(bool patient) const {
  StepSummary summary;
  summary.steps = steps_.load();
  summary.samples = samples_.load();
  summary.step_seconds = step_seconds_.summary(patient);
  for (std::size_t part = 0; part < kStepParts; ++part) summary.parts[part] = parts_[part].summary(patient);
  summary.stalled_steps = stalled_steps_.load();
  summary.stalled_seconds = static_cast<double>(stalled_ns_.load()) * kNs;
  summary.timed_samples = timed_samples_.load();
  summary.timed_sample_seconds = static_cast<double>(timed_sample_ns_.load()) * kNs;
  return summary;
}

}  // namespace tidemark
