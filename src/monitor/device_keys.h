// The short names by which options and reports know the devices of a machine.
#pragma once

#include <string>
#include <vector>

#include "collect/machine/device_source.h"

namespace tidemark {

inline constexpr const char* kHostKey = "cpu";

/// By position. The devices of the first vendor that has any are numbered as its tool does: "0", "1", and "0:1" for
/// instance 1 of GPU 0. Those of other vendors beside them have the vendor's name in front: "amd-0".
[[nodiscard]] std::vector<std::string> device_keys(const std::vector<DeviceInfo>& devices);

/// The reverse, for a device of which only the key was kept: its number, and that of the GPU whose instance it is.
/// Nothing where it is no such key.
void set_numbers(DeviceInfo& info, const std::string& key);

/// Whether `choice` means the device: its key or its UUID.
[[nodiscard]] bool is_choice(const std::string& choice, const std::string& key, const DeviceInfo& device);

struct WatchedDevice;

/// A name for a device that stays: unique on its host, and the same tomorrow: its UUID, or its PCI address, or vendor
/// and number; "host" for the host's memory.
[[nodiscard]] std::string device_id(const WatchedDevice& device);

}  // namespace tidemark
