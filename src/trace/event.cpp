#include "trace/event.h"

#include <fmt/format.h>

#include <cstddef>
#include <system_error>

#include "base/units.h"

namespace tidemark {

namespace {

constexpr EnumName<DeviceType> kDeviceTypeNames[] = {
    {DeviceType::cpu, "cpu"},
    {DeviceType::cuda, "cuda"},
    {DeviceType::hip, "hip"},
    {DeviceType::xpu, "xpu"},
    {DeviceType::cuda_driver, "cuda-driver"},
    {DeviceType::cuda_managed, "cuda-managed"},
    {DeviceType::cuda_host, "cuda-host"},
};
constexpr std::string_view kNamelessPrefix = "device-type-";  // of types without a name, before their number

std::string type_name(DeviceType type) {
  const std::string_view name = name_in(kDeviceTypeNames, type, "");
  return name.empty() ? fmt::format("{}{}", kNamelessPrefix, static_cast<int>(type)) : std::string(name);
}

std::optional<DeviceType> parse_type(std::string_view text) {
  if (!text.starts_with(kNamelessPrefix)) return value_in(kDeviceTypeNames, text);
  const auto number = parse_number<std::int8_t>(text.substr(kNamelessPrefix.size()));
  if (!number || *number < 0 || type_name(static_cast<DeviceType>(*number)) != text) return std::nullopt;
  return static_cast<DeviceType>(*number);
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
  const std::size_t colon = text.find(':');
  const auto type = parse_type(text.substr(0, colon));
  if (!type || has_index(*type) != (colon != std::string_view::npos)) return std::nullopt;
  if (!has_index(*type)) return Device{*type, 0};
  const auto index = parse_number<std::int8_t>(text.substr(colon + 1));
  if (!index) return std::nullopt;
  return Device{*type, *index};
}

}  // namespace tidemark
