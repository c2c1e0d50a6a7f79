#include "trace/event.h"

#include <fmt/format.h>

namespace tidemark {

std::string to_string(Device device) {
  switch (device.type) {
    case DeviceType::cpu:
      return "cpu";
    case DeviceType::cuda:
      return fmt::format("cuda:{}", device.index);
    case DeviceType::hip:
      return fmt::format("hip:{}", device.index);
    case DeviceType::xpu:
      return fmt::format("xpu:{}", device.index);
  }
  return fmt::format("device-type-{}:{}", static_cast<int>(device.type), device.index);
}

}  // namespace tidemark
