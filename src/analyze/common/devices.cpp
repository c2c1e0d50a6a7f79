#include "analyze/common/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace tidemark {
namespace {

int group_of(Device device) {
  if (is_driver_memory(device)) return 2;
  return device.type == DeviceType::cpu ? 1 : 0;
}

}  // namespace

bool listed_before(Device left, Device right) {
  return std::tuple(group_of(left), left.type, left.index) < std::tuple(group_of(right), right.type, right.index);
}

std::vector<std::size_t> devices_in_order(const Overview& overview) {
  std::vector<std::size_t> order(overview.devices.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return listed_before(overview.devices[left].device, overview.devices[right].device);
  });
  return order;
}

Result<std::vector<std::size_t>> select_devices(const Overview& overview, const std::optional<std::string>& device) {
  std::vector<std::size_t> selected;
  std::string known;
  for (const std::size_t index : devices_in_order(overview)) {
    const Device found = overview.devices[index].device;
    const std::string name = to_string(found);
    if (device ? *device == name : !is_driver_memory(found)) selected.push_back(index);
    known += (known.empty() ? "" : ", ") + name;
  }
  if (device && selected.empty()) {
    return Error{fmt::format("{}: no device '{}' (available: {})", overview.path, *device,
                             known.empty() ? "none: no events recorded" : known)};
  }
  return selected;
}

}  // namespace tidemark
