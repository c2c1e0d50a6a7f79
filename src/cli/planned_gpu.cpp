#include "cli/planned_gpu.h"

#include <fmt/format.h>

#include "collect/machine/inventory.h"

namespace tidemark::cli {

Result<GpuProfile> choose_gpu(const std::string& name) {
  if (name != "auto") return find_gpu_profile(name);
  for (const ListedDevice& device : take_inventory().devices) {
    if (device.info.vendor == "nvidia") return find_gpu_profile(device.info.name);
  }
  return Error{"this machine has no NVIDIA GPU to plan for; name one with --gpu, such as --gpu H100-80GB"};
}

std::string gpu_names() {
  std::string names;
  for (const GpuProfile& gpu : gpu_profiles()) names += fmt::format("{}{}", names.empty() ? "" : ", ", gpu.name);
  return names;
}

}  // namespace tidemark::cli
