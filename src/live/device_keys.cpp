#include "live/device_keys.h"

#include <fmt/format.h>

namespace tidemark {

std::vector<std::string> device_keys(const std::vector<DeviceInfo>& devices) {
  std::vector<std::string> keys;
  keys.reserve(devices.size());
  for (const DeviceInfo& device : devices) {
    const std::string vendor = device.vendor == devices.front().vendor ? "" : device.vendor + "-";
    keys.push_back(device.instance_of ? fmt::format("{}{}:{}", vendor, *device.instance_of, device.index)
                                      : fmt::format("{}{}", vendor, device.index));
  }
  return keys;
}

bool is_choice(const std::string& choice, const std::string& key, const DeviceInfo& device) {
  return choice == key || (!device.uuid.empty() && choice == device.uuid);
}

}  // namespace tidemark
