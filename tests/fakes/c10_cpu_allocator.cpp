// Fake libc10: its CPU allocator, which calls the reporter through the library's own import table as the real one does.
#include <cstdlib>

#include "c10.h"
#include "event_log.h"

namespace {

fakes::EventLog said("FAKES_SAID");

c10::ProfiledCPUMemoryReporter& reporter() {
  static c10::ProfiledCPUMemoryReporter instance;
  return instance;
}

}  // namespace

extern "C" void* fakes_cpu_allocate(std::size_t size) {
  void* address = size == 0 ? nullptr : std::malloc(size);  // tensors without elements are reported too
  said.add(fakes::Kind::cpu_new, address, static_cast<std::int64_t>(size), 0, 0, 0, 0);
  reporter().New(address, size);
  return address;
}

extern "C" void fakes_cpu_free(void* address) {
  said.add(fakes::Kind::cpu_delete, address, 0, 0, 0, 0, 0);
  reporter().Delete(address);
  std::free(address);
}

extern "C" void fakes_cpu_fail(std::size_t size) {
  said.add(fakes::Kind::cpu_fail, nullptr, static_cast<std::int64_t>(size), 0, 0, 0, 0);
  reporter().OutOfMemory(size);
}
