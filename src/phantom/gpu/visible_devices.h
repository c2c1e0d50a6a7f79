// Which of the phantom GPUs a process sees, and in what order: CUDA_VISIBLE_DEVICES, as the driver reads it; which of
// them a thread has chosen; and the tool that the environment names for CUDA to load.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::phantom {

/// The devices that a value of CUDA_VISIBLE_DEVICES names, of `devices` that there are: numbers, or UUIDs or their
/// beginnings ("GPU-7469"), up to the first that there is not; none when one is named twice.
[[nodiscard]] std::vector<int> parse_visible_devices(std::string_view value, int devices);

/// Those of this process: place in the list is the number by which it knows a device. Read from the environment when
/// first asked for, and says on stderr what names no device. Thread-safe.
[[nodiscard]] const std::vector<int>& visible_devices();

/// Whether the process has a device of this number.
[[nodiscard]] inline bool is_device(int device) {
  return device >= 0 && device < static_cast<int>(visible_devices().size());
}

/// The number that a device of the process has among all that there are.
[[nodiscard]] inline int physical_device(int device) {
  return visible_devices()[static_cast<std::size_t>(device)];
}

/// The device that this thread has chosen; 0 until it has.
[[nodiscard]] int current_device();
void set_current_device(int device);

/// The UUIDs of phantom devices, which `tidemark plan` gives a program in CUDA_VISIBLE_DEVICES: no real GPU has them.
/// The sixteen bytes "tidemark-phanto" and the device's number in hexadecimal, as nvidia-smi -L writes UUIDs.
/// `device`: among those of the profile.
[[nodiscard]] inline std::string device_uuid(int device) {
  char text[64];
  std::snprintf(text, sizeof text, "GPU-74696465-6d61-726b-2d70-68616e746f%02x", static_cast<unsigned>(device) & 0xffU);
  return text;
}

/// Loads the library that CUDA_INJECTION64_PATH names and calls its InitializeInjection(), as the driver does when it
/// is initialized. Does nothing the second time. Thread-safe.
void load_injected_tool();

}  // namespace tidemark::phantom
