#include "analyze/usage/driver_memory.h"

#include <algorithm>

namespace tidemark {

std::optional<Device> DriverBytes::take(const DeviceTotals& totals) {
  const Device device = store_.devices[totals.device].device;
  const std::uint64_t before = taken_;
  taken_ = totals.change_count;
  // The driver's devices have no totals: each of their states is one live change, the last.
  if (device.type != DeviceType::cuda_driver || taken_ == before) return std::nullopt;
  const LiveChange& change = store_.live_changes[taken_ - 1];
  if (owners_.of(store_.blocks.stack[change.block.value]) == MemoryOwners::kTorchAllocator) return std::nullopt;
  const std::uint64_t size = store_.blocks.size[change.block.value];
  std::uint64_t& bytes = bytes_[device.index];
  bytes = change.birth ? bytes + size : bytes - size;
  return Device{DeviceType::cuda, device.index};
}

std::uint64_t DriverBytes::bytes(Device gpu) const {
  const auto found = bytes_.find(gpu.index);
  return found == bytes_.end() ? 0 : found->second;
}

bool DriverBytes::known(const Overview& overview, Device device) {
  return device.type == DeviceType::cuda &&
         std::any_of(overview.devices.begin(), overview.devices.end(),
                     [](const DeviceSummary& summary) { return is_driver_memory(summary.device); });
}

}  // namespace tidemark
