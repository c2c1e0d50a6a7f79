#include "plan/driver_profile.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <utility>

#include "phantom/gpu/abi.h"

namespace tidemark {
namespace {

// Fails with the function that the driver lacks or that failed.
class Driver {
 public:
  explicit Driver(void* library) : library_(library) {}

  template <typename... Arguments>
  void call(const char* name, Arguments... arguments) {
    if (failed_ != nullptr) return;
    auto* function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(library_, name));
    code_ = function == nullptr ? -1 : function(arguments...);
    if (code_ != 0) failed_ = name;
  }

  template <typename T>
  void attribute(T& value, int which, int device) {
    int number = 0;
    call("cuDeviceGetAttribute", &number, which, device);
    value = static_cast<T>(number);
  }

  [[nodiscard]] Result<void> result() const {
    if (failed_ == nullptr) return {};
    return Error{fmt::format("libcuda.so.1: {} failed with CUresult {}; name a GPU with --gpu, such as --gpu H100-80GB",
                             failed_, code_)};
  }

 private:
  void* library_;
  const char* failed_ = nullptr;
  int code_ = 0;
};

}  // namespace

Result<GpuProfile> profile_of_this_machine() {
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);  // stays loaded: it may have started threads
  if (library == nullptr) {
    return Error{"this machine has no NVIDIA GPU to plan for; name one with --gpu, such as --gpu H100-80GB"};
  }
  Driver driver(library);
  GpuProfile gpu;
  int device = 0;
  std::array<char, 256> name{};
  std::size_t memory = 0;
  driver.call("cuInit", 0U);
  driver.call("cuDeviceGet", &device, 0);
  driver.call("cuDeviceGetName", name.data(), static_cast<int>(name.size()) - 1, device);
  driver.call("cuDeviceTotalMem_v2", &memory, device);
  for (const auto& [number, which] : {std::pair{&gpu.major, phantom::kCapabilityMajor},
                                      {&gpu.minor, phantom::kCapabilityMinor},
                                      {&gpu.multiprocessors, phantom::kMultiprocessors},
                                      {&gpu.memory_bus_bits, phantom::kMemoryBusBits},
                                      {&gpu.limits.shared_bytes, phantom::kSharedBytesPerMultiprocessor},
                                      {&gpu.limits.shared_bytes_per_block, phantom::kSharedBytesPerBlockOptin},
                                      {&gpu.limits.threads, phantom::kThreadsPerMultiprocessor},
                                      {&gpu.limits.blocks, phantom::kBlocksPerMultiprocessor}}) {
    driver.attribute(*number, which, device);
  }
  driver.attribute(gpu.l2_cache_bytes, phantom::kL2CacheBytes, device);
  if (auto done = driver.result(); !done) return done.error();
  gpu.name = gpu.full_name = name.data();
  gpu.memory_bytes = memory;
  gpu.measured = true;
  return gpu;
}

}  // namespace tidemark
