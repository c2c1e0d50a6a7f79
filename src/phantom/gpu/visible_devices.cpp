#include "phantom/gpu/visible_devices.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>

#include "base/units.h"
#include "phantom/gpu/profile.h"

namespace tidemark::phantom {
namespace {

thread_local int chosen_device = 0;

std::optional<int> device_named(std::string_view name, int devices) {
  constexpr std::string_view kUuid = "GPU-";
  if (name.starts_with(kUuid)) {
    for (int device = 0; device < devices; ++device)
      if (name.size() > kUuid.size() && device_uuid(device).starts_with(name)) return device;
    return std::nullopt;
  }
  const auto device = parse_number<int>(name);
  return device && *device >= 0 && *device < devices ? device : std::nullopt;
}

std::string_view without_spaces(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::vector<int> read_environment() {
  const int devices = profile().devices;
  const char* const value = std::getenv("CUDA_VISIBLE_DEVICES");
  if (value == nullptr) {
    std::vector<int> all(static_cast<std::size_t>(devices));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  std::vector<int> visible = parse_visible_devices(value, devices);
  const std::string_view text = value;
  const auto named = static_cast<std::size_t>(std::count(text.begin(), text.end(), ',')) + 1;
  if (!text.empty() && text != "-1" && visible.size() < named)
    std::fprintf(
        stderr,
        "tidemark: CUDA_VISIBLE_DEVICES=%s names a device that the plan has not; `tidemark plan --devices` sets "
        "how many there are, here %d\n",
        value, devices);
  return visible;
}

}  // namespace

std::vector<int> parse_visible_devices(std::string_view value, int devices) {
  std::vector<int> visible;
  while (!value.empty()) {
    const std::size_t comma = std::min(value.find(','), value.size());
    const auto device = device_named(without_spaces(value.substr(0, comma)), devices);
    if (!device) break;
    if (std::find(visible.begin(), visible.end(), *device) != visible.end()) return {};
    visible.push_back(*device);
    value.remove_prefix(std::min(comma + 1, value.size()));
  }
  return visible;
}

const std::vector<int>& visible_devices() {
  static const auto* const kVisible = new std::vector<int>(read_environment());
  return *kVisible;
}

int current_device() {
  return chosen_device;
}
void set_current_device(int device) {
  chosen_device = device;
}

void load_injected_tool() {
  static std::atomic<bool> loaded{false};
  if (loaded.load(std::memory_order_relaxed) || loaded.exchange(true)) return;
  const char* const path = std::getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr) return;
  void* const tool = dlopen(path, RTLD_NOW);
  if (tool == nullptr) return;
  if (void* const start = dlsym(tool, "InitializeInjection")) reinterpret_cast<int (*)()>(start)();
}

}  // namespace tidemark::phantom
