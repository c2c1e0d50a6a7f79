// Segments from the driver's cuMemAlloc, or, where FAKES_SEGMENTS is "expandable", as PyTorch's expandable segments:
// pages of physical memory that are mapped one after the other, each handle released at once.
#include <cstdlib>
#include <map>
#include <string_view>
#include <vector>

#include "driver_library.h"
#include "fakes/segments.h"

namespace {

using namespace fakes;

constexpr std::uint64_t kPage = 2 << 20;
constexpr std::uint64_t kMaxPages = 1 << 12;
constexpr int kCuda = 1;  // c10::DeviceType::CUDA

struct Segments {
  std::vector<DevicePointer> blocks;
  DevicePointer base = 0;  ///< of the range of addresses for pages
  std::uint64_t pages = 0;
};

// The allocator's lock guards it.
std::map<int, Segments> segments_of;  // NOLINT

bool expandable() {
  const char* wanted = std::getenv("FAKES_SEGMENTS");
  return wanted != nullptr && std::string_view(wanted) == "expandable";
}

void add_page(Segments& segments, Device device) {
  AllocationProperties properties{};
  properties.type = 1;  // CU_MEM_ALLOCATION_TYPE_PINNED
  properties.location = {tidemark::process::cuda::kLocationDevice, device};
  if (segments.base == 0) DRIVER(cuMemAddressReserve)(&segments.base, kMaxPages * kPage, 0, 0, 0);
  AllocationHandle handle = 0;
  DRIVER(cuMemCreate)(&handle, kPage, &properties, 0);
  DRIVER(cuMemMap)(segments.base + segments.pages++ * kPage, kPage, 0, handle, 0);
  DRIVER(cuMemRelease)(handle);
}

}  // namespace

void take_segments(int type, int index, std::uint64_t bytes) {
  if (type != kCuda) return;
  Segments& segments = segments_of[index];
  if (expandable()) {
    for (std::uint64_t taken = 0; taken < bytes; taken += kPage) add_page(segments, index);
    return;
  }
  Context context = nullptr;
  DRIVER(cuDevicePrimaryCtxRetain)(&context, index);
  DRIVER(cuCtxSetCurrent)(context);
  DRIVER(cuMemAlloc_v2)(&segments.blocks.emplace_back(), bytes);
}

void give_back_segments(int type, int index) {
  if (type != kCuda) return;
  Segments& segments = segments_of[index];
  for (const DevicePointer block : segments.blocks) DRIVER(cuMemFree_v2)(block);
  if (segments.pages > 0) DRIVER(cuMemUnmap)(segments.base, segments.pages * kPage);
  segments.blocks.clear();
  segments.pages = 0;
}
