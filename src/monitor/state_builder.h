// Adds readings to a MachineState.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collect/recorder/lanes/lane_reader.h"
#include "collect/recorder/sampling/readings.h"
#include "monitor/machine_state.h"

namespace tidemark {

struct WatchedChoice {
  std::vector<std::string> devices = {};  ///< keys or UUIDs; empty: all
  std::optional<std::int64_t> pid = {};   ///< only this process and its descendants; std::nullopt: all
};

/// One thread at a time. Memory is bounded, regardless of the time and the number of processes.
class StateBuilder {
 public:
  /// Times count from now, or from `start_ticks`.
  StateBuilder(WatchedChoice choice, const TickClock& clock);
  StateBuilder(WatchedChoice choice, const TickClock& clock, std::uint64_t start_ticks);

  /// Whether a device is among the chosen ones. On any thread.
  [[nodiscard]] static bool is_chosen(const WatchedChoice& choice, const std::vector<DeviceInfo>& devices,
                                      std::size_t position);

  void add(const Reading& reading);
  /// Updates the time and ended processes. Call it after adding readings.
  void update() { update(clock_.now()); }
  /// As if that were the current time.
  void update(std::uint64_t now_ticks);

  [[nodiscard]] MachineState& state() { return state_; }
  [[nodiscard]] const MachineState& state() const { return state_; }

 private:
  void add(std::uint64_t time_ns, const DevicesFound& found);
  void add(std::uint64_t time_ns, const DeviceSample& sample);
  void add(std::uint64_t time_ns, const DeviceProcessesSample& listed);
  void add(std::uint64_t time_ns, const DeviceLost& lost);
  void add(std::uint64_t time_ns, const HostReading& host);
  void add(std::uint64_t time_ns, const HostPartsSample& parts);
  void add_host_device();
  void add_host_use(std::uint64_t time_ns, const HostReading& reading);
  [[nodiscard]] WatchedDevice* device_of(SampledDeviceId position);
  [[nodiscard]] WatchedProcess* known_process(std::int64_t pid, bool elsewhere);
  WatchedProcess& process_of(std::int64_t pid, bool elsewhere, std::uint64_t time_ns);
  [[nodiscard]] bool is_of_job(std::int64_t pid) const;
  [[nodiscard]] WatchedPid watched_pid() const;
  void forget_ended();

  WatchedChoice choice_;
  const TickClock& clock_;
  std::uint64_t start_ticks_;
  std::vector<std::optional<std::size_t>> positions_;  ///< in state_.devices, by position among those found
  std::vector<std::int64_t> job_;                      ///< from the latest reading of the host
  bool pid_seen_ = false;
  bool pid_there_ = false;
  std::uint64_t host_at_ns_ = 0;
  MachineState state_;
};

}  // namespace tidemark
