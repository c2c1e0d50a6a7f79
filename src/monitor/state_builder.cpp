#include "monitor/state_builder.h"

#include <algorithm>
#include <utility>

#include "monitor/device_keys.h"

namespace tidemark {
namespace {

constexpr std::size_t kMaxProcesses = 256;
// A process appears in one list later than in another, so a process in no list may just be new.
constexpr std::uint64_t kEndedAfterNs = 2'500'000'000;

std::optional<double> percent(std::optional<std::uint64_t> part, std::optional<std::uint64_t> all) {
  if (!part || all.value_or(0) == 0) return std::nullopt;
  return static_cast<double>(*part) / static_cast<double>(*all) * 100;
}

}  // namespace

StateBuilder::StateBuilder(WatchedChoice choice, const TickClock& clock)
    : StateBuilder(std::move(choice), clock, clock.now()) {}

StateBuilder::StateBuilder(WatchedChoice choice, const TickClock& clock, std::uint64_t start_ticks)
    : choice_(std::move(choice)), clock_(clock), start_ticks_(start_ticks) {
  state_.began_wall_ns = state_.now_wall_ns = clock.wall_ns(start_ticks_);
}

bool StateBuilder::is_chosen(const WatchedChoice& choice, const std::vector<DeviceInfo>& devices,
                             std::size_t position) {
  if (choice.devices.empty()) return true;
  const std::string key = device_keys(devices)[position];
  return std::any_of(choice.devices.begin(), choice.devices.end(),
                     [&](const std::string& chosen) { return is_choice(chosen, key, devices[position]); });
}

void StateBuilder::add(const Reading& reading) {
  const std::uint64_t time_ns = clock_.between_ns(start_ticks_, reading.ticks);
  if (reading.ticks != 0) state_.latest_reading_ns = time_ns;
  std::visit(
      [&](const auto& kind) {
        if constexpr (requires { add(time_ns, kind); }) add(time_ns, kind);  // the other kinds occur only in recordings
      },
      reading.what);
}

void StateBuilder::add(std::uint64_t /*time_ns*/, const DevicesFound& found) {
  state_.devices_known = true;
  state_.problems = found.problems;
  state_.no_gpu = found.devices.empty();
  state_.all_keys = device_keys(found.devices);
  state_.all_keys.emplace_back(kHostKey);
  for (std::size_t n = 0; n < found.devices.size(); ++n) {
    const bool chosen = is_chosen(choice_, found.devices, n);
    positions_.push_back(chosen ? std::optional(state_.devices.size()) : std::nullopt);
    if (!chosen) continue;
    WatchedDevice& device = state_.devices.emplace_back();
    device.key = state_.all_keys[n];
    device.info = found.devices[n];
  }
  const auto is_host = [](const std::string& chosen) { return chosen == kHostKey; };
  if (choice_.devices.empty() ? state_.no_gpu : std::any_of(choice_.devices.begin(), choice_.devices.end(), is_host)) {
    add_host_device();
  }
  for (const std::string& chosen : choice_.devices) {
    const bool there = std::any_of(state_.devices.begin(), state_.devices.end(),
                                   [&](const auto& device) { return is_choice(chosen, device.key, device.info); });
    if (!there) state_.missing_keys.push_back(chosen);
  }
}

void StateBuilder::add_host_device() {
  WatchedDevice& device = state_.devices.emplace_back();
  device.key = kHostKey;
  device.is_host = true;
}

WatchedDevice* StateBuilder::device_of(SampledDeviceId position) {
  if (position.value >= positions_.size() || !positions_[position.value]) return nullptr;
  return &state_.devices[*positions_[position.value]];
}

void StateBuilder::add(std::uint64_t time_ns, const DeviceSample& sample) {
  WatchedDevice* device = device_of(sample.device);
  if (device == nullptr) return;
  device->latest = sample;
  device->latest.device = {};
  device->sampled_at_ns = time_ns;
  if (sample.utilization_percent) device->utilization_percent.add(*sample.utilization_percent);
  if (!sample.used_bytes) return;
  device->used.add(time_ns, *sample.used_bytes);
  device->used_distribution.add(static_cast<double>(*sample.used_bytes));
  if (const auto share = percent(sample.used_bytes, device->info.total_bytes)) device->used_percent.add(*share);
}

void StateBuilder::add(std::uint64_t time_ns, const DeviceProcessesSample& listed) {
  WatchedDevice* device = device_of(listed.device);
  if (device == nullptr) return;
  device->processes = listed.processes;
  const auto position = static_cast<std::size_t>(device - state_.devices.data());
  for (WatchedProcess& process : state_.processes) {
    for (ProcessOnDevice& on : process.devices) {
      if (on.device == position) on.held = false;
    }
  }
  for (const SampledProcess& sampled : listed.processes) {
    const bool elsewhere = sampled.kind == ProcessKind::other_namespace;
    if (choice_.pid && (elsewhere || !is_of_job(sampled.pid))) continue;
    WatchedProcess& process = process_of(sampled.pid, elsewhere, time_ns);
    process.kind = sampled.kind;
    if (!sampled.name.empty()) process.name = sampled.name;
    const auto known = std::find_if(process.devices.begin(), process.devices.end(),
                                    [position](const ProcessOnDevice& on) { return on.device == position; });
    ProcessOnDevice& on = known != process.devices.end() ? *known : process.devices.emplace_back();
    on.device = position;
    on.held = true;
    on.bytes = sampled.bytes;
    if (sampled.bytes) on.used.add(time_ns, *sampled.bytes);
  }
}

void StateBuilder::add(std::uint64_t /*time_ns*/, const DeviceLost& lost) {
  WatchedDevice* device = device_of(lost.device);
  if (device == nullptr) return;
  device->lost = lost.why;
  const auto position = static_cast<std::size_t>(device - state_.devices.data());
  device->latest = {};
  device->processes.reset();
  for (WatchedProcess& process : state_.processes) {
    for (ProcessOnDevice& on : process.devices) {
      if (on.device == position) on.held = false;
    }
  }
}

void StateBuilder::add(std::uint64_t time_ns, const HostReading& reading) {
  host_at_ns_ = time_ns;
  add_host_use(time_ns, reading);
  job_.clear();
  pid_there_ = false;
  for (WatchedProcess& process : state_.processes) process.rss_bytes.reset();
  for (const ProcessMemory& memory : reading.processes) {
    job_.push_back(memory.pid);
    if (memory.pid == choice_.pid) pid_there_ = pid_seen_ = true;
    if (memory.is_recorder) continue;  // a recorder of the job, with little memory
    WatchedProcess& process = process_of(memory.pid, false, time_ns);
    if (!memory.name.empty()) process.name = memory.name;
    if (memory.below_recorder && process.kind == ProcessKind::other) process.kind = ProcessKind::job;
    process.rss_bytes = memory.rss_bytes;
    if (memory.rss_bytes) process.rss.add(time_ns, *memory.rss_bytes);
    if (!memory.pss_bytes) continue;  // not read this time: keep the previous value
    process.pss_bytes = memory.pss_bytes;
    process.pss.add(time_ns, *memory.pss_bytes);
  }
}

void StateBuilder::add_host_use(std::uint64_t time_ns, const HostReading& reading) {
  WatchedHost& host = state_.host;
  host.memory = reading.machine;
  // A group that is gone, with its container, has no values: the last ones stay. The machine's usage does not continue
  // them.
  if (host.limited_by_cgroup() && !reading.sample.cgroup_usage_bytes && !reading.sample.cgroup_limit_bytes) return;
  host.cgroup_folder = reading.cgroup_folder;
  host.cgroup_pid = reading.cgroup_pid;
  host.cgroup_usage_bytes = reading.sample.cgroup_usage_bytes;
  host.cgroup_limit_bytes = reading.sample.cgroup_limit_bytes;
  host.cgroup_oom_kills = reading.sample.cgroup_oom_kills;
  host.cgroup_inactive_file_bytes = reading.cgroup_inactive_file_bytes;
  if (!host.cgroup_oom_kills_at_start) host.cgroup_oom_kills_at_start = host.cgroup_oom_kills;
  const auto used = host.used_bytes();
  const auto share = percent(used, host.limit_bytes());
  if (used) host.used.add(time_ns, *used);
  if (share) host.used_percent.add(*share);
  for (WatchedDevice& device : state_.devices) {
    if (!device.is_host) continue;
    device.info.total_bytes = host.limit_bytes();
    device.latest.used_bytes = used;
    device.sampled_at_ns = time_ns;
    if (used) device.used.add(time_ns, *used);
    if (share) device.used_percent.add(*share);
  }
}

void StateBuilder::add(std::uint64_t /*time_ns*/, const HostPartsSample& parts) {
  state_.host.cgroup_parts = parts.cgroup;
  state_.host.machine_parts = parts.machine;
  for (const HostProcess& read : parts.processes) {
    if (WatchedProcess* process = known_process(read.pid, false)) process->on_host = read;
  }
}

// Equal PIDs of another namespace are other processes.
WatchedProcess* StateBuilder::known_process(std::int64_t pid, bool elsewhere) {
  const auto known = std::find_if(state_.processes.begin(), state_.processes.end(), [&](const WatchedProcess& process) {
    return process.pid == pid && !process.ended && elsewhere == (process.kind == ProcessKind::other_namespace);
  });
  return known == state_.processes.end() ? nullptr : &*known;
}

WatchedProcess& StateBuilder::process_of(std::int64_t pid, bool elsewhere, std::uint64_t time_ns) {
  WatchedProcess* const known = known_process(pid, elsewhere);
  WatchedProcess& process = known != nullptr ? *known : state_.processes.emplace_back();
  if (process.pid < 0) process.first_seen_ns = time_ns;
  process.pid = pid;
  process.last_seen_ns = time_ns;
  return process;
}

bool StateBuilder::is_of_job(std::int64_t pid) const {
  return pid == choice_.pid || std::find(job_.begin(), job_.end(), pid) != job_.end();
}

WatchedPid StateBuilder::watched_pid() const {
  if (!choice_.pid) return WatchedPid::none;
  if (!pid_there_ && pid_seen_) return WatchedPid::ended;
  if (state_.no_gpu) return WatchedPid::running;
  bool hidden = false;
  bool listed = false;
  for (const WatchedDevice& device : state_.devices) {
    for (const SampledProcess& process : device.processes.value_or(std::vector<SampledProcess>())) {
      const bool elsewhere = process.kind == ProcessKind::other_namespace;
      hidden = hidden || elsewhere;
      listed = listed || (!elsewhere && is_of_job(process.pid));
    }
  }
  return listed ? WatchedPid::running : hidden ? WatchedPid::hidden : WatchedPid::not_listed;
}

void StateBuilder::update(std::uint64_t ticks) {
  state_.now_ns = clock_.between_ns(start_ticks_, ticks);
  state_.now_wall_ns = clock_.wall_ns(ticks);
  for (WatchedProcess& process : state_.processes) {
    const bool held = process.rss_bytes || std::any_of(process.devices.begin(), process.devices.end(),
                                                       [](const ProcessOnDevice& on) { return on.held; });
    if (held || state_.latest_reading_ns < process.last_seen_ns + kEndedAfterNs) continue;
    process.ended = true;
    process.pss_bytes.reset();
    if (process.on_host) process.on_host->pages = {};
  }
  state_.watched_pid = watched_pid();
  forget_ended();
}

void StateBuilder::forget_ended() {
  while (state_.processes.size() > kMaxProcesses) {
    const auto ended = std::find_if(state_.processes.begin(), state_.processes.end(),
                                    [](const WatchedProcess& process) { return process.ended; });
    if (ended == state_.processes.end()) return;
    state_.processes.erase(ended);
    ++state_.forgotten_processes;
  }
}

}  // namespace tidemark
