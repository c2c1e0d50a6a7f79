// The short names of a machine's devices in options and reports.
#pragma once

#include <string>
#include <vector>

#include "collect/machine/device_source.h"

namespace tidemark {

inline constexpr const char* kHostKey = "cpu";

/// By position. The devices of the first vendor that has any are numbered as its tool does: "0", "1", and "0:1" for
/// instance 1 of GPU 0. Devices of other vendors beside them have the vendor's name in front: "amd-0".
[[nodiscard]] std::vector<std::string> device_keys(const std::vector<DeviceInfo>& devices);

/// The reverse, for a device of which only the key was kept: sets its number, and the number of the GPU that it is an
/// instance of. No effect if `key` is invalid.
void set_numbers(DeviceInfo& info, const std::string& key);

/// Whether `choice` names the device: its key or its UUID.
[[nodiscard]] bool is_choice(const std::string& choice, const std::string& key, const DeviceInfo& device);

struct WatchedDevice;

/// A permanent name for a device, unique on its host: its UUID, or its PCI address, or vendor and number; "host" for
/// the host's memory.
[[nodiscard]] std::string device_id(const WatchedDevice& device);

}  // namespace tidemark
