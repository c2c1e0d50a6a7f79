// The training steps of a followed recording, and the memory of its stacks at each step: input of the growth detector
// for a recorded process, beside samples.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "analyze/forecast/growth_detector.h"
#include "analyze/steps/training_steps.h"
#include "store/store.h"
#include "trace/event.h"

namespace tidemark {

/// For one recording. A source is a stack: SourceBytes::source is the value of its StackId, also of an invalid one for
/// blocks without a stack. Not thread-safe.
class StepSources {
 public:
  /// Takes the steps of a window that were not in an earlier one, as find_training_steps() finds them; windows come in
  /// order of time. `begin_ns`: beginning of the window. Takes O(n log n) for n blocks. Returns the window's steps.
  TrainingSteps take(const Store& window, std::uint64_t begin_ns);
  /// Events were skipped: some steps are in no window, and the memory at later steps is another series.
  void miss();
  /// Adds a sample of the device's allocated bytes. Times are of another clock than the recording's.
  void add(Device device, const UsageSample& sample) { detector_of(device).add(sample); }

  /// Steps so far; never decreases. std::nullopt if unknown, or if some were in no window: the program makes more
  /// events than a window holds between two updates.
  [[nodiscard]] std::optional<std::uint64_t> steps() const {
    return counted_ == 0 || missed_ ? std::nullopt : std::optional(counted_);
  }
  /// For each device that has samples or blocks.
  [[nodiscard]] std::vector<std::pair<Device, LiveGrowths>> assess() const;

 private:
  GrowthDetector& detector_of(Device device);
  [[nodiscard]] bool is_same_clock(const TrainingSteps& steps) const;

  std::vector<std::pair<Device, GrowthDetector>> detectors_;  // few: by device
  TrainingSteps::Source source_ = TrainingSteps::Source::none;
  StackId anchor_;
  std::uint64_t taken_until_ns_ = 0;  // time of the latest step given to the detectors
  std::uint64_t counted_until_ns_ = 0;
  std::uint64_t counted_ = 0;
  bool missed_ = false;
};

}  // namespace tidemark
