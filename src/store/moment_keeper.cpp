#include "store/moment_keeper.h"

#include <algorithm>
#include <utility>

namespace tidemark {
namespace {

// A slow call is known only after the samples that it covers, at 10 a second: those of 6 seconds.
constexpr std::size_t kMostHighs = 64;

}  // namespace

void MomentKeeper::add(const SampleRecord& record, std::optional<std::uint64_t> last_event_ns, const Held& held) {
  if (const auto* device = std::get_if<SampledDevice>(&record)) {
    devices_.emplace_back().moments.device = *device;
  } else if (const auto* sample = std::get_if<DeviceSample>(&record)) {
    add_sample(*sample, last_event_ns, held);
  } else if (const auto* processes = std::get_if<DeviceProcessesSample>(&record)) {
    add_processes(*processes, held);
  } else if (const auto* call = std::get_if<SlowDriverCall>(&record)) {
    add_slow_call(*call);
  }
}

void MomentKeeper::add_sample(const DeviceSample& sample, std::optional<std::uint64_t> last_event_ns,
                              const Held& held) {
  Running& device = devices_[sample.device.value];
  device.sample_ns = std::max(device.sample_ns, sample.time_ns);
  if (!sample.used_bytes) return;
  DeviceMoment moment{device.sample_ns, *sample.used_bytes, held(), device.processes, std::nullopt};
  if (device.highs.empty() || moment.used_bytes > device.highs.back().used_bytes) {
    if (device.highs.size() == kMostHighs) device.highs.erase(device.highs.begin());
    device.highs.push_back(moment);
  }
  if (last_event_ns && moment.time_ns <= *last_event_ns) {
    device.moments.end = std::move(moment);
    device.pending.reset();
  } else {
    device.pending = std::move(moment);
    has_pending_ = true;
  }
}

void MomentKeeper::add_processes(const DeviceProcessesSample& sample, const Held& held) {
  Running& device = devices_[sample.device.value];
  device.processes_ns = std::max(device.processes_ns, sample.time_ns);
  device.processes = ProcessesMoment{sample, held()};
  device.processes->sample.time_ns = device.processes_ns;
  device.moments.seen_in_use |=
      std::any_of(sample.processes.begin(), sample.processes.end(),
                  [](const SampledProcess& process) { return process.kind == ProcessKind::recorded; });
  for (std::optional<DeviceMoment>* moment : {&device.moments.end, &device.pending}) {
    if (*moment && !(*moment)->next_processes) (*moment)->next_processes = device.processes;
  }
  for (DeviceMoment& high : device.highs) {
    if (!high.next_processes) high.next_processes = device.processes;
  }
}

void MomentKeeper::add_slow_call(const SlowDriverCall& call) {
  for (Running& device : devices_) {
    std::erase_if(device.highs, [&](const DeviceMoment& high) {
      if (!call.covers(high.time_ns)) return false;
      device.covered_bytes = std::max(device.covered_bytes, high.used_bytes);
      return true;
    });
  }
}

void MomentKeeper::take_pending() {
  for (Running& device : devices_) {
    if (device.pending) device.moments.end = std::exchange(device.pending, std::nullopt);
  }
  has_pending_ = false;
}

std::vector<DeviceMoments> MomentKeeper::finish() && {
  std::vector<DeviceMoments> moments;
  moments.reserve(devices_.size());
  for (Running& device : devices_) {
    if (!device.highs.empty()) device.moments.peak = std::move(device.highs.back());
    const std::uint64_t peak = device.moments.peak ? device.moments.peak->used_bytes : 0;
    if (device.covered_bytes > peak) device.moments.transient_peak_bytes = device.covered_bytes;
    moments.push_back(std::move(device.moments));
  }
  return moments;
}

}  // namespace tidemark
