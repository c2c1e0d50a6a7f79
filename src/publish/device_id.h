// A name for a device that stays.
#pragma once

#include <string>

#include "monitor/machine_state.h"

namespace tidemark {

/// Unique on its host, and the same tomorrow: its UUID, or its PCI address, or vendor and number; "host" for the host's
/// memory.
[[nodiscard]] inline std::string device_id(const WatchedDevice& device) {
  if (device.is_host) return "host";
  if (!device.info.uuid.empty()) return device.info.uuid;
  if (!device.info.bus_id.empty() && !device.info.instance_of) return device.info.bus_id;
  return device.info.vendor + ":" + device.key;
}

}  // namespace tidemark
