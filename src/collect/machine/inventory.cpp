#include "collect/machine/inventory.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "collect/machine/processes.h"
#include "collect/machine/visible_devices.h"

namespace tidemark {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

ListedDevice list(DeviceSource& source, std::size_t position, const std::string& root) {
  ListedDevice listed;
  listed.info = source.devices()[position];
  auto sample = source.read(position);
  if (!sample) {
    listed.error = sample.error().message;
    return listed;
  }
  listed.sample = *sample;
  auto processes = source.processes(position);
  if (!processes || !*processes) return listed;
  listed.processes = std::move(*processes);
  for (SampledProcess& process : *listed.processes) name_process(process, root);
  std::stable_sort(listed.processes->begin(), listed.processes->end(),
                   [](const SampledProcess& left, const SampledProcess& right) { return left.bytes > right.bytes; });
  return listed;
}

void add_visibility(Inventory& inventory) {
  std::vector<DeviceInfo> devices;
  devices.reserve(inventory.devices.size());
  for (const ListedDevice& device : inventory.devices) devices.push_back(device.info);
  const bool has_cuda =
      std::any_of(devices.begin(), devices.end(), [](const auto& info) { return info.vendor == "nvidia"; });
  if (!has_cuda) return;
  const VisibleDevices seen =
      apply_cuda_visibility(devices, inventory.cuda_visible_devices, inventory.cuda_device_order);
  inventory.visibility_problem = seen.problem;
  for (std::size_t n = 0; n < devices.size(); ++n) {
    inventory.devices[n].visible_to_cuda = seen.visible[n];
    inventory.devices[n].info.cuda_index = seen.ordinals[n];
  }
}

}  // namespace

Inventory take_inventory(const SourcePlaces& places) {
  Inventory inventory;
  for (const OpenedSource& opened : open_device_sources(places)) {
    if (!opened.absent.empty()) continue;
    inventory.drivers.push_back({opened.vendor, opened.source ? opened.source->driver() : "", opened.problem});
    if (opened.source == nullptr) continue;
    for (std::size_t n = 0; n < opened.source->devices().size(); ++n) {
      inventory.devices.push_back(list(*opened.source, n, places.root));
    }
  }
  inventory.cuda_visible_devices = variable("CUDA_VISIBLE_DEVICES");
  inventory.cuda_device_order = variable("CUDA_DEVICE_ORDER");
  add_visibility(inventory);
  inventory.host = read_host_memory(places.root);
  if (const auto cgroup = Cgroup::of_this_process(places.root)) {
    const CgroupReading reading = cgroup->read();
    inventory.cgroup = {cgroup->version(), cgroup->folder(), cgroup->limit_bytes(), reading.usage_bytes,
                        reading.oom_kills};
  }
  return inventory;
}

}  // namespace tidemark
