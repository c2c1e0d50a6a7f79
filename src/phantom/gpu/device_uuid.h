// The UUIDs of phantom devices, which `tidemark plan` gives a program in CUDA_VISIBLE_DEVICES: no real GPU has them.
#pragma once

#include <cstdio>
#include <string>

namespace tidemark::phantom {

/// The sixteen bytes "tidemark-phanto" and the device's number in hexadecimal, as nvidia-smi -L writes UUIDs.
/// `device`: among those of the profile.
[[nodiscard]] inline std::string device_uuid(int device) {
  char text[64];
  std::snprintf(text, sizeof text, "GPU-74696465-6d61-726b-2d70-68616e746f%02x", static_cast<unsigned>(device) & 0xffU);
  return text;
}

}  // namespace tidemark::phantom
