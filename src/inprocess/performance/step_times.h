// Durations of the steps of a training loop, and of their parts.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/enum_names.h"
#include "inprocess/performance/metric_values.h"

namespace tidemark {

enum class StepPart : std::uint8_t {
  data = 0,  ///< waiting for data
  forward = 1,
  backward = 2,
  optimizer = 3,
};
inline constexpr std::size_t kStepParts = 4;
inline constexpr EnumName<StepPart> kStepPartNames[] = {{StepPart::data, "data"},
                                                        {StepPart::forward, "forward"},
                                                        {StepPart::backward, "backward"},
                                                        {StepPart::optimizer, "optimizer"}};
[[nodiscard]] constexpr std::string_view name_of(StepPart value) {
  return name_in(kStepPartNames, value);
}

/// A step that waited for data for more than this share of its time is stalled.
inline constexpr double kStalledShare = 0.1;

/// Times are seconds of the host's clock.
struct StepSummary {
  std::uint64_t steps = 0;  ///< completed steps
  std::uint64_t samples = 0;
  ValueSummary step_seconds;                   ///< of steps with a known beginning
  std::array<ValueSummary, kStepParts> parts;  ///< one value for each measurement of a part
  std::uint64_t stalled_steps = 0;             ///< see kStalledShare
  double stalled_seconds = 0;                  ///< waiting time of these steps
  std::uint64_t timed_samples = 0;             ///< samples of the steps in step_seconds that have a sample count
  double timed_sample_seconds = 0;             ///< duration of these steps
};

/// A step ends with step(); it begins at the end of the one before, and the first one with the first measured part.
/// Thread-safe, without waiting.
class StepTimes {
 public:
  /// The clock for `now_ns` below: steady, with any zero but never 0.
  [[nodiscard]] static std::int64_t now_ns();

  void part_began(std::int64_t now_ns) noexcept;
  void part_ended(StepPart part, std::int64_t began_ns, std::int64_t now_ns) noexcept;
  void step_ended(std::uint64_t samples, std::int64_t now_ns) noexcept;

  [[nodiscard]] StepSummary summary(bool patient = true) const;

  /// Durations since the last call. One thread at a time.
  [[nodiscard]] RunningMoments take_recent() { return step_seconds_.take_recent(); }

 private:
  std::atomic<std::int64_t> began_ns_ = 0;   // the current step; 0: there is none
  std::atomic<std::int64_t> waited_ns_ = 0;  // for data, in the current step
  std::atomic<std::uint64_t> steps_ = 0;
  std::atomic<std::uint64_t> samples_ = 0;
  std::atomic<std::uint64_t> timed_samples_ = 0;
  std::atomic<std::int64_t> timed_sample_ns_ = 0;
  std::atomic<std::uint64_t> stalled_steps_ = 0;
  std::atomic<std::int64_t> stalled_ns_ = 0;
  MetricValues step_seconds_;
  std::array<MetricValues, kStepParts> parts_;
};

}  // namespace tidemark
