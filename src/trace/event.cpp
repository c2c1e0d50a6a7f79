#include "trace/event.h"

#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <limits>
#include <system_error>

namespace tidemark {

namespace {

std::string type_name(DeviceType type) {
  switch (type) {
    case DeviceType::cpu:
      return "cpu";
    case DeviceType::cuda:
      return "cuda";
    case DeviceType::hip:
      return "hip";
    case DeviceType::xpu:
      return "xpu";
    case DeviceType::cuda_driver:
      return "cuda-driver";
    case DeviceType::cuda_managed:
      return "cuda-managed";
    case DeviceType::cuda_host:
      return "cuda-host";
  }
  return fmt::format("device-type-{}", static_cast<int>(type));
}

bool has_index(DeviceType type) {
  return type != DeviceType::cpu && type != DeviceType::cuda_host;
}

}  // namespace

std::string to_string(Device device) {
  const std::string name = type_name(device.type);
  return has_index(device.type) ? fmt::format("{}:{}", name, device.index) : name;
}

std::optional<Device> parse_device(std::string_view text) {
  for (const DeviceType type : {DeviceType::cpu, DeviceType::cuda_host}) {
    if (text == type_name(type)) return Device{type, 0};
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  Device device;
  const std::string_view index = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(index.data(), index.data() + index.size(), device.index);
  if (error != std::errc() || end != index.data() + index.size()) return std::nullopt;
  for (int type = 1; type <= std::numeric_limits<std::int8_t>::max(); ++type) {
    device.type = static_cast<DeviceType>(type);
    if (has_index(device.type) && type_name(device.type) == text.substr(0, colon)) return device;
  }
  return std::nullopt;
}

}  // namespace tidemark
