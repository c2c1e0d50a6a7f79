// Fake libc10: logs the reports it receives.
#include <atomic>

#include "c10.h"
#include "event_log.h"

namespace {

constexpr c10::Device kCpu{0, 0};

fakes::EventLog heard("FAKES_HEARD");
std::atomic<bool> profiling{false};
int registered = 0;

}  // namespace

namespace c10 {

void reportMemoryUsageToProfiler(void* address, std::int64_t size, Total allocated, Total reserved, Device device) {
  const fakes::Kind kind = device.type == kCpu.type ? fakes::Kind::profiler
                           : size >= 0              ? fakes::Kind::allocate
                                                    : fakes::Kind::free;
  heard.add(kind, address, size, static_cast<std::uint64_t>(allocated), static_cast<std::uint64_t>(reserved),
            device.type, device.index);
}

void reportOutOfMemoryToProfiler(std::int64_t size, Total allocated, Total reserved, Device device) {
  heard.add(fakes::Kind::fail, nullptr, size, static_cast<std::uint64_t>(allocated),
            static_cast<std::uint64_t>(reserved), device.type, device.index);
}

namespace impl {

DeviceGuardImplRegistrar::DeviceGuardImplRegistrar(DeviceType type, const DeviceGuardImplInterface* /*guard*/) {
  if (type == DeviceType::cuda) ++registered;
}

}  // namespace impl

void ProfiledCPUMemoryReporter::New(void* address, std::size_t size) {
  heard.add(fakes::Kind::cpu_new, address, static_cast<std::int64_t>(size), 0, 0, 0, 0);
  if (profiling) reportMemoryUsageToProfiler(address, static_cast<std::int64_t>(size), 1, 0, kCpu);
}

void ProfiledCPUMemoryReporter::Delete(void* address) {
  heard.add(fakes::Kind::cpu_delete, address, 0, 0, 0, 0, 0);
  if (profiling) reportMemoryUsageToProfiler(address, -1, 0, 0, kCpu);
}

void ProfiledCPUMemoryReporter::OutOfMemory(std::size_t size) {
  heard.add(fakes::Kind::cpu_fail, nullptr, static_cast<std::int64_t>(size), 0, 0, 0, 0);
}

}  // namespace c10

extern "C" int fakes_registered() {
  return registered;
}

extern "C" void fakes_profile(bool on) {
  profiling = on;
}
