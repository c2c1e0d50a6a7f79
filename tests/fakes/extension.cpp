// A library that reports to c10 itself, like an extension with a pluggable allocator.
#include <cstdint>

#include "c10.h"
#include "event_log.h"

namespace {

fakes::EventLog said("FAKES_SAID");

}  // namespace

extern "C" void fakes_extension_report(std::uint64_t address, std::int64_t size) {
  constexpr c10::Device kDevice{1, 7};
  auto* pointer = reinterpret_cast<void*>(address);
  said.add(fakes::Kind::allocate, pointer, size, 1, 2, kDevice.type, kDevice.index);
  c10::reportMemoryUsageToProfiler(pointer, size, 1, 2, kDevice);
}
