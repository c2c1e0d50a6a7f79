#include "monitor/device_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/units.h"
#include "monitor/machine_state.h"

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

void set_numbers(DeviceInfo& info, const std::string& key) {
  std::string_view numbers = key;
  numbers.remove_prefix(std::min(numbers.rfind('-') + 1, numbers.size()));  // of the vendor
  const std::size_t colon = numbers.find(':');
  const auto first = parse_number<std::uint32_t>(numbers.substr(0, colon));
  const auto second =
      colon == std::string_view::npos ? std::nullopt : parse_number<std::uint32_t>(numbers.substr(colon + 1));
  if (!first || (colon != std::string_view::npos && !second)) return;
  info.index = second.value_or(*first);
  if (second) info.instance_of = first;
}

bool is_choice(const std::string& choice, const std::string& key, const DeviceInfo& device) {
  return choice == key || (!device.uuid.empty() && choice == device.uuid);
}

std::string device_id(const WatchedDevice& device) {
  if (device.is_host) return "host";
  if (!device.info.uuid.empty()) return device.info.uuid;
  if (!device.info.bus_id.empty() && !device.info.instance_of) return device.info.bus_id;
  return device.info.vendor + ":" + device.key;
}

}  // namespace tidemark
