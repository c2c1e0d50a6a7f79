// The phantom GPUs visible to a process, and their order: CUDA_VISIBLE_DEVICES, interpreted as by the driver; the
// device chosen by a thread; and the tool that the environment makes CUDA load.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/simulated_gpu.h"

namespace tidemark::phantom {

/// The devices that a value of CUDA_VISIBLE_DEVICES names, out of `devices`: numbers, or UUIDs or their beginnings
/// ("GPU-7469"), up to the first that does not exist; none if one is named twice.
[[nodiscard]] std::vector<int> parse_visible_devices(std::string_view value, int devices);

/// The devices of this process; the position in the list is the number of a device in the process. Read from the
/// environment at the first call, which prints invalid names on stderr. Thread-safe.
[[nodiscard]] const std::vector<int>& visible_devices();

/// Whether the process has a device with this number.
[[nodiscard]] inline bool is_device(int device) {
  return device >= 0 && device < static_cast<int>(visible_devices().size());
}

/// The number of a device of the process among all devices of the machine.
[[nodiscard]] inline int physical_device(int device) {
  return visible_devices()[static_cast<std::size_t>(device)];
}

/// The device that this thread has chosen; 0 by default.
[[nodiscard]] int current_device();
void set_current_device(int device);

/// The UUIDs of phantom devices, which `tidemark plan` sets in CUDA_VISIBLE_DEVICES. `device`: among those of the
/// profile.
[[nodiscard]] inline std::string device_uuid(int device) {
  char number[4];
  std::snprintf(number, sizeof number, "%02x", static_cast<unsigned>(device) & 0xffU);
  return std::string(kSimulatedGpuUuid) + number;
}

/// Loads the library in CUDA_INJECTION64_PATH and calls its InitializeInjection(), as the driver does when it is
/// initialized. Does nothing the second time. Thread-safe.
void load_injected_tool();

}  // namespace tidemark::phantom
