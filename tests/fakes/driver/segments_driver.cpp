// Segments from the runtime's cudaMalloc, or, if FAKES_SEGMENTS is "expandable" or "expandable by dlsym", like
// PyTorch's expandable segments: pages of physical memory that are mapped one after the other, each handle released at
// once.
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "driver_library.h"
#include "fakes/c10.h"
#include "fakes/segments.h"
#include "libraries.h"

namespace {

using namespace fakes;

constexpr std::uint64_t kPage = 2 << 20;
constexpr std::uint64_t kMaxPages = 1 << 12;
constexpr int kCuda = 1;  // c10::DeviceType::CUDA

struct Segments {
  std::vector<void*> blocks;
  DevicePointer base = 0;  ///< of the range of addresses for pages
  std::uint64_t pages = 0;
};

// The allocator's lock guards it.
std::map<int, Segments> segments_of;  // NOLINT

bool wants(std::string_view segments) {
  const char* wanted = std::getenv("FAKES_SEGMENTS");
  return wanted != nullptr && wanted == segments;
}

/// A function of the driver, looked up once like in PyTorch.
template <typename Function>
Function* looked_up(const char* name) {
  static std::map<std::string, void*> functions;
  void*& function = functions[name];
  int found = 0;
  if (function == nullptr && wants("expandable by dlsym")) function = driver_function(name);
  if (function == nullptr) cudaGetDriverEntryPointByVersion(name, &function, 12000, 0, &found);
  return reinterpret_cast<Function*>(function);
}
#define LOOKED_UP(name) (looked_up<decltype(::name)>(#name))

/// As libc10_cuda does when it is loaded.
const c10::impl::DeviceGuardImplRegistrar registrar(c10::DeviceType::cuda, nullptr);

bool expandable() {
  return wants("expandable") || wants("expandable by dlsym");
}

void add_page(Segments& segments, Device device) {
  AllocationProperties properties{};
  properties.type = 1;  // CU_MEM_ALLOCATION_TYPE_PINNED
  properties.location = {tidemark::process::cuda::kLocationDevice, device};
  if (segments.base == 0) DRIVER(cuMemAddressReserve)(&segments.base, kMaxPages * kPage, 0, 0, 0);
  AllocationHandle handle = 0;
  LOOKED_UP(cuMemCreate)(&handle, kPage, &properties, 0);
  LOOKED_UP(cuMemMap)(segments.base + segments.pages++ * kPage, kPage, 0, handle, 0);
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
  Device device = -1;
  if (cudaGetDevice(&device) != 0 || device != index) std::abort();
  cudaMalloc(&segments.blocks.emplace_back(), bytes);
}

void give_back_segments(int type, int index) {
  if (type != kCuda) return;
  Segments& segments = segments_of[index];
  for (void* block : segments.blocks) cudaFree(block);
  if (segments.pages > 0) LOOKED_UP(cuMemUnmap)(segments.base, segments.pages * kPage);
  segments.blocks.clear();
  segments.pages = 0;
}
