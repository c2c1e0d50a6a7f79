// What paced_events reports to, in PyTorch's place: libc10 with nothing in it but the function that is interposed.
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
