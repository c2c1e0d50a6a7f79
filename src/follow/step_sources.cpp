#include "follow/step_sources.h"

#include <algorithm>
#include <unordered_map>

namespace tidemark {

GrowthDetector& StepSources::detector_of(Device device) {
  const auto known =
      std::find_if(detectors_.begin(), detectors_.end(), [&](const auto& of) { return of.first == device; });
  return known != detectors_.end() ? known->second : detectors_.emplace_back(device, GrowthDetector()).second;
}

bool StepSources::is_same_clock(const TrainingSteps& steps) const {
  return steps.source == source_ && steps.anchor == anchor_;
}

TrainingSteps StepSources::take(const Store& window, std::uint64_t begin_ns) {
  TrainingSteps steps = find_training_steps(window);
  if (steps.source == TrainingSteps::Source::none) return steps;
  // Memory at another place of the step is another series, and so is memory after steps that were not seen.
  const bool has_gap = counted_ > 0 && begin_ns > counted_until_ns_;
  missed_ = missed_ || has_gap;
  if (has_gap || !is_same_clock(steps)) {
    source_ = steps.source;
    anchor_ = steps.anchor;
    taken_until_ns_ = 0;
    for (auto& [device, detector] : detectors_) detector.forget_steps();
  }
  for (const DeviceSummary& device : window.devices) detector_of(device.device);

  std::vector<std::unordered_map<std::uint64_t, std::uint64_t>> held(window.devices.size());  // by stack
  std::size_t change = 0;
  std::vector<SourceBytes> sources;
  for (const TrainingSteps::Start& start : steps.starts) {
    for (; change < start.event_count; ++change) {
      const auto block = window.live_changes[change].block.value;
      std::uint64_t& bytes = held[window.blocks.device[block]][window.blocks.stack[block].value];
      const std::uint64_t size = window.blocks.size[block];
      bytes = window.live_changes[change].birth ? bytes + size : bytes - std::min(bytes, size);
    }
    if (start.time_ns > counted_until_ns_ || counted_ == 0) {
      counted_until_ns_ = start.time_ns;
      ++counted_;
    }
    if (start.time_ns <= taken_until_ns_) continue;
    taken_until_ns_ = start.time_ns;
    for (std::size_t device = 0; device < held.size(); ++device) {
      sources.clear();
      for (const auto& [stack, bytes] : held[device]) {
        if (bytes > 0) sources.push_back({stack, bytes});
      }
      detector_of(window.devices[device].device).end_step(start.time_ns, sources);
    }
  }
  return steps;
}

void StepSources::miss() {
  missed_ = true;
  source_ = TrainingSteps::Source::none;  // until the next window finds steps
  taken_until_ns_ = 0;
  for (auto& [device, detector] : detectors_) detector.forget_steps();
}

std::vector<std::pair<Device, LiveGrowths>> StepSources::assess() const {
  std::vector<std::pair<Device, LiveGrowths>> all;
  for (const auto& [device, detector] : detectors_) all.emplace_back(device, detector.assess());
  return all;
}

}  // namespace tidemark
