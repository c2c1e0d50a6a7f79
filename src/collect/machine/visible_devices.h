// Maps the devices of a machine to the numbers cuda:0, cuda:1, … of a CUDA program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collect/machine/device_source.h"

namespace tidemark {

/// The effect of CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER on the devices.
struct VisibleDevices {
  /// By position in the list of devices: the number N of cuda:N; std::nullopt if the program does not see the device,
  /// or its number cannot be determined from outside.
  std::vector<std::optional<std::uint32_t>> ordinals;
  /// By position: whether the program sees it.
  std::vector<bool> visible;
  std::string problem;  ///< why numbers are unknown, or no device is visible, as a sentence; else empty
};

/// `visible` and `order` are the variables' values, std::nullopt if not set. Rules: CUDA C++ Programming Guide, "CUDA
/// environment variables". Without CUDA_DEVICE_ORDER=PCI_BUS_ID, CUDA numbers the fastest GPU first, which is the order
/// of the bus if all GPUs are alike, and unknown here otherwise.
[[nodiscard]] VisibleDevices apply_cuda_visibility(const std::vector<DeviceInfo>& devices,
                                                   const std::optional<std::string>& visible,
                                                   const std::optional<std::string>& order);

/// The same with the variables that a process was started with, from /proc; as without variables if they cannot be
/// read. Variables that the program sets itself while it runs are not visible here.
[[nodiscard]] VisibleDevices visible_devices_of(std::int64_t pid, const std::vector<DeviceInfo>& devices);

/// A variable in an environment block as in /proc/PID/environ ("A=1\0B=2\0").
[[nodiscard]] std::optional<std::string> variable_in(std::string_view environment, std::string_view name);

}  // namespace tidemark
