// The part of PyTorch's c10 that its allocators report to, with the same mangled names.
//
//   torch 2.x    reportMemoryUsageToProfiler(void*, int64_t, size_t, size_t, Device)      …EPvlmmNS_6DeviceE
//   torch 1.13   reportMemoryUsageToProfiler(void*, int64_t, int64_t, int64_t, Device)    …EPvlllNS_6DeviceE
#pragma once

#include <cstddef>
#include <cstdint>

namespace c10 {

#ifdef FAKES_SIGNED_TOTALS
using Total = std::int64_t;
#else
using Total = std::size_t;
#endif

enum class DeviceType : std::int8_t { cuda = 1 };

struct Device {
  std::int8_t type;
  std::int8_t index;
};

void reportMemoryUsageToProfiler(void* address, std::int64_t size, Total allocated, Total reserved, Device device);
void reportOutOfMemoryToProfiler(std::int64_t size, Total allocated, Total reserved, Device device);

class ProfiledCPUMemoryReporter {
 public:
  void New(void* address, std::size_t size);
  void Delete(void* address);
  void OutOfMemory(std::size_t size);
};

namespace impl {

struct DeviceGuardImplInterface;

/// Created by each back-end when its library is loaded.
class DeviceGuardImplRegistrar {
 public:
  DeviceGuardImplRegistrar(DeviceType type, const DeviceGuardImplInterface* guard);
};

}  // namespace impl

}  // namespace c10

// For the test program.
extern "C" {
void* fakes_cpu_allocate(std::size_t size);
void fakes_cpu_free(void* address);
void fakes_cpu_fail(std::size_t size);
/// As torch.profiler(profile_memory=True): from now on CPU events also go to reportMemoryUsageToProfiler.
void fakes_profile(bool on);
/// Number of CUDA back-ends registered with c10.
int fakes_registered();
}
