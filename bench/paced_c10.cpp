// Replaces PyTorch for paced_events: a libc10 with only the interposed function.
#include <cstddef>
#include <cstdint>

namespace c10 {

struct Device {
  std::int8_t type;
  std::int8_t index;
};

void reportMemoryUsageToProfiler(void* address, std::int64_t size, std::size_t allocated, std::size_t reserved,
                                 Device device);
void reportMemoryUsageToProfiler(void* /*address*/, std::int64_t /*size*/, std::size_t /*allocated*/,
                                 std::size_t /*reserved*/, Device /*device*/) {}

}  // namespace c10
