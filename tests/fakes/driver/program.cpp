// A program that uses the memory of the stand-in driver.   program SCENE FOLDER-OF-LIBRARIES
#include <random>
#include <string_view>
#include <vector>

#include "scenes.h"

namespace fakes {

std::string libraries;  // NOLINT

void use_device(Device device) {
  Context context = nullptr;
  if (DRIVER(cuDevicePrimaryCtxRetain)(&context, device) == kSuccess) DRIVER(cuCtxSetCurrent)(context);
}

void start(Device device) {
  DRIVER(cuInit)(0);
  use_device(device);
}

DevicePointer allocate(std::size_t bytes) {
  DevicePointer address = 0;
  DRIVER(cuMemAlloc_v2)(&address, bytes);
  return address;
}

void free_block(DevicePointer address) {
  DRIVER(cuMemFree_v2)(address);
}

void plain_work(unsigned seed, int steps) {
  std::mt19937 random(seed);
  std::vector<DevicePointer> blocks;
  for (int step = 0; step < steps; ++step) {
    if (blocks.empty() || random() % 100 < 55) {
      blocks.push_back(allocate(random() % (8 * kMiB) + 1));
    } else {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      free_block(blocks.back());
      blocks.pop_back();
    }
  }
}

AllocationProperties on_device(Device device) {
  AllocationProperties properties{};
  properties.type = 1;
  properties.location = {tidemark::process::cuda::kLocationDevice, device};
  return properties;
}

namespace {

struct Scene {
  std::string_view name;
  int (*play)();
};

constexpr Scene kScenes[] = {
    {"plain", plain},
    {"libraries", through_libraries},
    {"host", host},
    {"vmm", vmm},
    {"graph", graph},
    {"devices", devices},
    {"reset", reset},
    {"failing", failing},
    {"failing_frees", failing_frees},
    {"graph_nodes", graph_nodes},
    {"arrays", arrays},
    {"unknown_arrays", unknown_arrays},
    {"never_seen", never_seen},
    {"pools", pools},
    {"pools_elsewhere", pools_elsewhere},
    {"many_pools", many_pools},
    {"pool_threads", pool_threads},
    {"pools_come_and_go", pools_come_and_go},
    {"threads", threads},
    {"killed", killed},
    {"forks", forks},
    {"paused", paused},
    {"pool_destroyed_in_pause", pool_destroyed_in_pause},
    {"tool_before", tool_before},
    {"tool_later", tool_later},
    {"tool_by_handle", tool_by_handle},
    {"activities_by_handle", activities_by_handle},
    {"training", training},
    {"empty_cache", empty_cache},
};

}  // namespace
}  // namespace fakes

int main(int count, char** arguments) {
  if (count != 3) return 2;
  fakes::libraries = arguments[2];
  for (const fakes::Scene& scene : fakes::kScenes) {
    if (scene.name == arguments[1]) return scene.play();
  }
  return 2;
}
