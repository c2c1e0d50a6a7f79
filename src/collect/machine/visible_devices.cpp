#include "collect/machine/visible_devices.h"

#include <fmt/format.h>

#include <algorithm>

#include "collect/machine/files.h"

namespace tidemark {
namespace {

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> entries;
  std::size_t start = 0;
  for (;;) {
    const std::size_t comma = list.find(',', start);
    entries.push_back(trimmed(list.substr(start, comma - start)));
    if (comma == std::string::npos) return entries;
    start = comma + 1;
  }
}

/// The devices that CUDA enumerates by default, by position: GPUs, and the first instance of a GPU divided by MIG.
std::vector<std::size_t> enumerated(const std::vector<DeviceInfo>& devices) {
  std::vector<std::size_t> found;
  for (std::size_t n = 0; n < devices.size(); ++n) {
    const DeviceInfo& device = devices[n];
    if (device.vendor != "nvidia") continue;
    const bool divided = device.mig_enabled.value_or(false);
    if (device.instance_of ? device.index == 0 : !divided) found.push_back(n);
  }
  return found;
}

/// The device with a UUID that begins with this entry, if there is exactly one.
std::optional<std::size_t> by_uuid(const std::vector<DeviceInfo>& devices, const std::string& entry) {
  std::optional<std::size_t> found;
  for (std::size_t n = 0; n < devices.size(); ++n) {
    if (devices[n].uuid.rfind(entry, 0) != 0) continue;
    if (found) return std::nullopt;
    found = n;
  }
  return found;
}

bool is_uuid(const std::string& entry) {
  return entry.rfind("GPU-", 0) == 0 || entry.rfind("MIG-", 0) == 0;
}

}  // namespace

VisibleDevices apply_cuda_visibility(const std::vector<DeviceInfo>& devices, const std::optional<std::string>& visible,
                                     const std::optional<std::string>& order) {
  VisibleDevices result;
  result.ordinals.resize(devices.size());
  result.visible.resize(devices.size(), false);
  const std::vector<std::size_t> all = enumerated(devices);
  const bool alike =
      std::all_of(all.begin(), all.end(), [&](std::size_t n) { return devices[n].name == devices[all.front()].name; });
  const bool numbered = alike || order == "PCI_BUS_ID";
  const auto cannot_number = [&] {
    result.problem =
        "there are GPUs of several kinds; set CUDA_DEVICE_ORDER=PCI_BUS_ID so that CUDA numbers them as nvidia-smi "
        "does";
  };

  if (!visible) {
    for (const std::size_t n : all) result.visible[n] = true;
    if (!numbered) {
      cannot_number();
      return result;
    }
    for (std::uint32_t ordinal = 0; ordinal < all.size(); ++ordinal) result.ordinals[all[ordinal]] = ordinal;
    return result;
  }

  // The list ends at the first entry that names no device; a device named twice makes the whole list invalid.
  std::vector<std::size_t> chosen;
  for (const std::string& entry : split(*visible)) {
    std::optional<std::size_t> device;
    if (is_uuid(entry)) {
      device = by_uuid(devices, entry);
    } else if (const auto number = leading_number(entry); number && *number < all.size()) {
      if (!numbered) {
        // One GPU, but it is unknown which; any of them may be visible.
        for (const std::size_t n : all) result.visible[n] = true;
        cannot_number();
        return result;
      }
      device = all[*number];
    }
    if (!device) break;
    if (std::find(chosen.begin(), chosen.end(), *device) != chosen.end()) {
      chosen.clear();
      break;
    }
    chosen.push_back(*device);
  }
  for (std::uint32_t ordinal = 0; ordinal < chosen.size(); ++ordinal) {
    result.ordinals[chosen[ordinal]] = ordinal;
    result.visible[chosen[ordinal]] = true;
  }
  if (chosen.empty())
    result.problem = fmt::format(
        "CUDA_VISIBLE_DEVICES={} hides every GPU from CUDA programs; unset it, or name GPUs as `nvidia-smi -L` does",
        *visible);
  return result;
}

std::optional<std::string> variable_in(std::string_view environment, std::string_view name) {
  while (!environment.empty()) {
    const std::string_view entry = environment.substr(0, environment.find('\0'));
    environment.remove_prefix(std::min(entry.size() + 1, environment.size()));
    if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
      return std::string(entry.substr(name.size() + 1));
    }
  }
  return std::nullopt;
}

VisibleDevices visible_devices_of(std::int64_t pid, const std::vector<DeviceInfo>& devices) {
  const std::string environment = read_file(fmt::format("/proc/{}/environ", pid)).value_or("");
  return apply_cuda_visibility(devices, variable_in(environment, "CUDA_VISIBLE_DEVICES"),
                               variable_in(environment, "CUDA_DEVICE_ORDER"));
}

}  // namespace tidemark
