#include "monitor/machine_state.h"

#include <algorithm>

namespace tidemark {
namespace {

constexpr std::uint64_t kFirstAnswersNs = 10'000'000'000;

std::optional<std::uint64_t> difference(std::optional<std::uint64_t> all, std::optional<std::uint64_t> part) {
  if (!all || !part) return std::nullopt;
  return *part < *all ? *all - *part : 0;
}

}  // namespace

std::optional<std::uint64_t> WatchedDevice::limit_bytes() const {
  return difference(info.total_bytes, latest.driver_reserved_bytes.value_or(0));
}

std::optional<std::uint64_t> WatchedDevice::free_bytes() const {
  return difference(limit_bytes(), latest.used_bytes);
}

std::optional<std::uint64_t> WatchedProcess::device_bytes() const {
  std::optional<std::uint64_t> sum;
  for (const ProcessOnDevice& device : devices) {
    if (device.held && device.bytes) sum = sum.value_or(0) + *device.bytes;
  }
  return sum;
}

bool WatchedHost::limited_by_cgroup() const {
  return cgroup_limit_bytes && (!memory.total_bytes || *cgroup_limit_bytes < *memory.total_bytes);
}

std::optional<std::uint64_t> WatchedHost::limit_bytes() const {
  return limited_by_cgroup() ? cgroup_limit_bytes : memory.total_bytes;
}

std::optional<std::uint64_t> WatchedHost::used_bytes() const {
  return limited_by_cgroup() ? difference(cgroup_usage_bytes, cgroup_inactive_file_bytes.value_or(0))
                             : difference(memory.total_bytes, memory.available_bytes);
}

std::optional<std::uint64_t> WatchedHost::free_bytes() const {
  return difference(limit_bytes(), used_bytes());
}

std::uint64_t WatchedHost::new_oom_kills() const {
  const std::uint64_t before = cgroup_oom_kills_at_start.value_or(0);
  return std::max(cgroup_oom_kills.value_or(before), before) - before;
}

bool MachineState::complete() const {
  return devices_known && host.memory.total_bytes &&
         std::all_of(devices.begin(), devices.end(), [](const WatchedDevice& device) {
           return device.sampled_at_ns.has_value() || !device.lost.empty();
         });
}

bool MachineState::is_starting() const {
  return now_ns < kFirstAnswersNs && !complete();
}

}  // namespace tidemark
