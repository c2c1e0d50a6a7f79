// States of a machine that trains, as an engine would have them each second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/units.h"
#include "monitor/engine.h"

namespace tidemark {

inline RiskAssessment risk_at(std::uint64_t second, double scale) {
  const auto seconds = static_cast<double>(second);
  RiskAssessment risk;
  risk.level = second % 50 > 40 ? RiskLevel::high : RiskLevel::low;
  risk.pattern = second < 36 ? UsagePattern::unknown : UsagePattern::growth;
  risk.confidence = 0.9;
  risk.used_bytes = 20 * kGiB + second * kMiB;
  risk.used_percent = 25 + seconds * scale / 1000;
  risk.growth_bytes_per_second = 1e6 * scale + seconds;
  risk.growth_error_bytes_per_second = 1e4 * scale;
  risk.growth_seconds = seconds;
  risk.seconds_to_limit = Interval{4000 / scale - seconds, 3900 / scale - seconds, 4100 / scale - seconds};
  if (second % 3 > 0) risk.steps_to_limit = Interval{1e4 - seconds, 9e3 - seconds, {}};
  risk.sample_count = second;
  risk.span_seconds = seconds;
  return risk;
}

// A machine that trains: as many GPUs as recorded processes.
class TrainingMachine {
 public:
  explicit TrainingMachine(std::size_t gpus) {
    MachineState& state = snapshot_.state;
    state.began_wall_ns = 1'790'000'000'000'000'000;
    state.devices_known = true;
    for (std::size_t n = 0; n < gpus; ++n) {
      WatchedDevice& device = state.devices.emplace_back();
      device.key = std::to_string(n);
      state.all_keys.push_back(device.key);
      device.info.vendor = "nvidia";
      device.info.name = "NVIDIA H100 80GB HBM3";
      device.info.uuid = "GPU-9f0c1a52-7a3e-4c1b-8f6e-0000000000" + std::to_string(10 + n);
      device.info.bus_id = "0000:65:00." + std::to_string(n);
      device.info.index = static_cast<std::uint32_t>(n);
      device.info.total_bytes = 80 * kGiB;
      WatchedProcess& process = state.processes.emplace_back();
      process.pid = 4000 + static_cast<std::int64_t>(n);
      process.kind = ProcessKind::job;
      process.name = "python train.py";
      process.devices.emplace_back().device = n;
      RecordedProcess& recorded = snapshot_.recorded.emplace_back();
      recorded.recording = {static_cast<pid_t>(4000 + n), "/data/run.rank" + std::to_string(n) + ".tide",
                            static_cast<std::int32_t>(n), "python train.py",
                            state.began_wall_ns,          5};
      recorded.caught_up = true;
      RecordedDevice& on = recorded.devices.emplace_back();
      on.device = {DeviceType::cuda, static_cast<std::int8_t>(n)};
      on.key = device.key;
    }
  }

  void pass_second() {
    const std::uint64_t second = ++second_;
    MachineState& state = snapshot_.state;
    state.now_ns = second * 1'000'000'000 + jitter();
    state.now_wall_ns = state.began_wall_ns + state.now_ns;
    state.latest_reading_ns = state.now_ns - jitter();
    state.steps.clear();
    for (std::size_t n = 0; n < state.devices.size(); ++n) {
      WatchedDevice& device = state.devices[n];
      const std::uint64_t used = 20 * kGiB + second * 2 * kMiB + jitter() / 8 * 512;
      device.sampled_at_ns = state.now_ns - jitter();
      device.latest.used_bytes = used;
      device.latest.utilization_percent = static_cast<std::uint32_t>(90 + jitter() % 10);
      device.latest.power_milliwatts = static_cast<std::uint32_t>(600'000 + jitter() % 50'000);
      device.used.add(*device.sampled_at_ns, used);
      device.used.add_peak(used + kGiB);
      device.used_distribution.add(static_cast<double>(used));
      device.used_percent.add(static_cast<double>(used) / static_cast<double>(80 * kGiB) * 100);
      device.utilization_percent.add(95);
      device.risk = risk_at(second, 1.0 + static_cast<double>(n));
      device.assessed_at_ns = device.sampled_at_ns;
      WatchedProcess& process = state.processes[n];
      process.last_seen_ns = state.now_ns;
      ProcessOnDevice& on = process.devices[0];
      on.held = true;
      on.bytes = used - kGiB;
      on.used.add(state.now_ns, *on.bytes);
      on.risk = ProcessRisk{risk_at(second, 2.0 + static_cast<double>(n)), 80 * kGiB};
      process.rss_bytes = 8 * kGiB + jitter() / 4096 * 4096;
      process.rss.add(state.now_ns, *process.rss_bytes);
      RecordedProcess& recorded = snapshot_.recorded[n];
      recorded.steps = second * 4;
      RecordedDevice& held = recorded.devices[0];
      held.allocated_bytes = used - 2 * kGiB;
      held.reserved_bytes = used - kGiB;
      held.allocated.add(state.now_ns, held.allocated_bytes, held.allocated_bytes + kGiB);
      held.reserved.add(state.now_ns, *held.reserved_bytes);
      held.unused_share.add(0.05);
      state.steps.push_back({process.pid, device.key, *held.reserved_bytes, *recorded.steps});
    }
    state.host.memory = {512 * kGiB, 400 * kGiB - jitter() / 4096 * 4096};
    state.host.used.add(state.now_ns, *state.host.used_bytes());
    state.host.risk = risk_at(second, 0.5);
    state.host.assessed_at_ns = state.now_ns;
  }

  [[nodiscard]] MonitorSnapshot& snapshot() { return snapshot_; }

 private:
  std::uint64_t jitter() { return (random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL) >> 44; }

  MonitorSnapshot snapshot_;
  std::uint64_t second_ = 0;
  std::uint64_t random_ = 1;
};

}  // namespace tidemark
