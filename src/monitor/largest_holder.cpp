#include "monitor/largest_holder.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kMinShare = 10;  // a tenth

std::uint64_t bytes_on(const WatchedProcess& process, const MachineState& state, const WatchedDevice* device) {
  if (device == nullptr) return process.pss_bytes.value_or(process.rss_bytes.value_or(0));
  std::uint64_t bytes = 0;
  for (const ProcessOnDevice& on : process.devices) {
    if (&state.devices[on.device] == device && on.held) bytes += on.bytes.value_or(0);
  }
  return bytes;
}

}  // namespace

std::optional<MemoryHolder> largest_holder(const MachineState& state, const WatchedDevice* device) {
  const WatchedProcess* largest = nullptr;
  std::uint64_t most = 0;
  for (const WatchedProcess& process : state.processes) {
    const std::uint64_t bytes = process.ended ? 0 : bytes_on(process, state, device);
    if (bytes <= most) continue;
    largest = &process;
    most = bytes;
  }
  const auto used = device == nullptr ? state.host.used_bytes() : device->used_bytes();
  if (largest == nullptr || most < used.value_or(0) / kMinShare) return std::nullopt;
  MemoryHolder holder;
  holder.process.pid = largest->pid;
  holder.process.kind = largest->kind;
  holder.process.name = largest->name;
  holder.process.on_host = largest->on_host;
  holder.bytes = most;
  return holder;
}

}  // namespace tidemark
