// A node of a job whose processes and devices are set by the test.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "cluster/protocol.h"
#include "cluster/state_sender.h"
#include "monitor/engine.h"

namespace tidemark {

inline constexpr std::uint64_t kSecondNs = 1'000'000'000;

class ScriptedNode {
 public:
  ScriptedNode(const std::string& name, std::uint64_t instance) : sender_(name, instance) {
    snapshot_.state.devices_known = true;
    snapshot_.state.began_wall_ns = 1'790'000'000'000'000'000;
    snapshot_.state.host.memory = {512 * kGiB, 400 * kGiB};
    snapshot_.state.host.used.add(kSecondNs, 112 * kGiB);
  }

  /// A GPU of 80 GiB with one rank on it, of which the driver sees `used_bytes`.
  void add_rank(std::uint32_t rank, std::uint64_t used_bytes, const std::string& role = "") {
    MachineState& state = snapshot_.state;
    const std::size_t n = state.devices.size();
    WatchedDevice& device = state.devices.emplace_back();
    device.key = std::to_string(n);
    device.info.name = "NVIDIA H100 80GB HBM3";
    device.info.index = static_cast<std::uint32_t>(n);
    device.info.total_bytes = 80 * kGiB;
    device.latest.used_bytes = used_bytes;
    device.used.add(kSecondNs, used_bytes);
    device.risk.pattern = UsagePattern::steady;
    device.risk.used_percent = static_cast<double>(used_bytes) * 100 / static_cast<double>(80 * kGiB);
    device.assessed_at_ns = kSecondNs;
    WatchedProcess& process = state.processes.emplace_back();
    process.pid = 4000 + static_cast<std::int64_t>(n);
    process.name = "python train.py";
    ProcessOnDevice& on = process.devices.emplace_back();
    on.device = n;
    on.held = true;
    on.bytes = used_bytes;
    identities_.push_back({process.pid, rank, static_cast<std::uint32_t>(n), std::nullopt, role});
  }

  /// The rank at this place is recorded, with memory by category.
  void record(std::size_t place, std::uint64_t reserved, const std::vector<std::pair<Category, std::uint64_t>>& parts) {
    RecordedProcess& recorded = snapshot_.recorded.emplace_back();
    recorded.recording.pid = static_cast<pid_t>(4000 + place);
    recorded.recording.rank = identities_[place].rank ? static_cast<std::int32_t>(*identities_[place].rank) : -1;
    RecordedDevice& on = recorded.devices.emplace_back();
    on.device = {DeviceType::cuda, static_cast<std::int8_t>(place)};
    on.key = snapshot_.state.devices[place].key;
    on.reserved_bytes = reserved;
    RecordedOwners& owners = recorded.owners.emplace_back();
    owners.device = on.device;
    for (const auto& [category, bytes] : parts) {
      on.allocated_bytes += bytes;
      owners.categories[static_cast<std::size_t>(category)] = bytes;
    }
  }

  void set_steps(std::size_t place, std::uint64_t steps) {
    const std::int64_t pid = 4000 + static_cast<std::int64_t>(place);
    for (ProcessSteps& known : snapshot_.state.steps) {
      if (known.pid == pid) {
        known.steps = steps;
        return;
      }
    }
    snapshot_.state.steps.push_back({pid, snapshot_.state.devices[place].key, 0, steps});
  }

  RiskAssessment& risk(std::size_t place) { return snapshot_.state.devices[place].risk; }
  RankIdentity& identity(std::size_t place) { return identities_[place]; }
  MachineState& state() { return snapshot_.state; }
  MonitorSnapshot& snapshot() { return snapshot_; }
  StateSender& sender() { return sender_; }
  [[nodiscard]] std::string token() const { return subject_token(sender_.node()); }

  /// The next message, of this time since the agent's start.
  std::string message(std::uint64_t elapsed_ns) {
    snapshot_.state.now_ns = elapsed_ns;
    return sender_.next(snapshot_, identities_, elapsed_ns);
  }

 private:
  MonitorSnapshot snapshot_;
  std::vector<RankIdentity> identities_;
  StateSender sender_;
};

}  // namespace tidemark
