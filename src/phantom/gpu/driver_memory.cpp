#include "phantom/gpu/driver_memory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "phantom/gpu/device_memory.h"
#include "phantom/gpu/profile.h"
#include "phantom/gpu/usage.h"
#include "phantom/gpu/visible_devices.h"

namespace tidemark::phantom {
namespace {

constexpr std::size_t kMiB = 1 << 20;
constexpr std::size_t kKiB = 1 << 10;
constexpr std::size_t kPiece = 2;  // MiB

// The context's own memory, in the order in which it is taken.
constexpr std::size_t kContext = 32;
constexpr std::size_t kContextTables = 70;
constexpr std::size_t kStacks = 414;       // for kernels without calls
constexpr std::size_t kMovedStacks = 504;  // for kernels that may call assert() or printf()
constexpr std::size_t kPrintfBuffer = 10;
constexpr std::size_t kPrintfBufferBytes = 0x841000;  // in device memory
constexpr std::size_t kCublasHandle = 64;
constexpr int kCudnnHandlePieces = 4;
// cuDNN's own libraries, loaded with the first handle: for precompiled engines, heuristics, and engines compiled at run
// time. They fill holes that regions would use.
constexpr std::size_t kCudnnLibraries[] = {242, 66, 36};

constexpr std::size_t kCodePiece = 2 * kMiB;
// In the first piece of code; the driver's own code takes the rest. This and the sizes of cuBLAS's kernels were fitted
// to the times at which the driver took its second piece, in 58 programs.
constexpr std::size_t kFirstCode = 340 * kKiB;

// Code of cuBLAS's kernel for a product. Large results are computed in larger tiles, by other kernels: if each of 132
// multiprocessors has more than a tile.
constexpr long long kLargeSingleResult = 132LL * 128 * 64;
constexpr long long kLargeHalfResult = 132LL * 128 * 96;
constexpr long long kThin = 16;

bool is_large(const Product& product) {
  return product.rows * product.columns > (product.single ? kLargeSingleResult : kLargeHalfResult);
}

bool is_thin(const Product& product) {
  return product.single && std::min({product.rows, product.columns, product.depth}) <= kThin;
}

std::size_t code_of(const Product& product) {
  if (!product.single) return (is_large(product) ? 34 : 17) * kKiB;
  if (product.by_lt) return (is_large(product) ? 64 : 16) * kKiB;
  if (is_large(product)) return 124 * kKiB;
  return (is_thin(product) ? 31 : 51) * kKiB;
}

// A profile without a context has no driver's memory either: `tidemark simulate` gives all memory to PyTorch's
// allocator.
void count_driver_memory(std::size_t bytes) {
  if (profile().context == 0) return;
  const int device = physical_device(current_device());
  take_driver_memory(device, bytes);
  count_driver_bytes(device, bytes);
}

}  // namespace

DriverMemory::DriverMemory(AddressSpace& addresses, Listener listener) : addresses_(addresses), listener_(listener) {
  const bool mapped = reserve(kContext) != nullptr && reserve(kContextTables) != nullptr;
  reserve(kPiece);
  stacks_ = reserve(kStacks);
  if (mapped && stacks_ != nullptr) return;
  std::fputs("tidemark: the phantom GPU cannot reserve addresses; raise the limit of virtual memory (ulimit -v)\n",
             stderr);
  std::_Exit(2);
}

void DriverMemory::say(std::size_t bytes) const {
  if (listener_ != nullptr) listener_(bytes);
}

// Takes only addresses.
void* DriverMemory::reserve(std::size_t mebibytes) {
  return addresses_.reserve(mebibytes * kMiB, kPiece * kMiB);
}

// Takes addresses and device memory.
void* DriverMemory::take(std::size_t mebibytes) {
  say(mebibytes * kMiB);
  return reserve(mebibytes);
}

void DriverMemory::share_library_memory() {
  if (!library_memory_) take(kPiece);
  library_memory_ = true;
}

void DriverMemory::map_host_memory() {
  if (!host_memory_) reserve(kPiece);
  host_memory_ = true;
}

void DriverMemory::load_code(std::size_t bytes) {
  if (bytes <= code_left_) {
    code_left_ -= bytes;
    return;
  }
  take(kPiece);
  code_left_ = kCodePiece - bytes % kCodePiece;
}

void DriverMemory::load_kernel(const LoadedKernel& kernel) {
  const std::lock_guard lock(mutex_);
  if (!code_taken_) {
    code_taken_ = true;
    take(kPiece);
    code_left_ = kFirstCode;
  }
  load_code(kernel.code_bytes);
  if (kernel.module_prints && !moved_stacks_) {
    moved_stacks_ = true;
    addresses_.release(stacks_, kStacks * kMiB);
    stacks_ = reserve(kMovedStacks);
    say((kMovedStacks - kStacks) * kMiB);
    take(kPiece);
  }
  if (kernel.prints && !printf_buffer_) {
    printf_buffer_ = true;
    reserve(kPrintfBuffer);
    say(kPrintfBufferBytes);
  }
}

void DriverMemory::multiply(const Product& product) {
  const std::lock_guard lock(mutex_);
  const auto kernel =
      std::tuple(product.single, product.by_lt, product.transposed, is_large(product), is_thin(product));
  if (products_.insert(kernel).second) load_code(code_of(product));
}

void DriverMemory::create_cublas_handle() {
  const std::lock_guard lock(mutex_);
  share_library_memory();
  take(kCublasHandle);
}

void DriverMemory::create_cudnn_handle() {
  const std::lock_guard lock(mutex_);
  share_library_memory();
  if (!cudnn_loaded_)
    for (const std::size_t mebibytes : kCudnnLibraries) addresses_.occupy(mebibytes * kMiB);
  cudnn_loaded_ = true;
  for (int piece = 0; piece < kCudnnHandlePieces; ++piece) take(kPiece);
  map_host_memory();
}

void DriverMemory::pin_host_memory() {
  const std::lock_guard lock(mutex_);
  map_host_memory();
}

DriverMemory& driver_memory() {
  static auto* const kMemory = new DriverMemory(address_space(), &count_driver_memory);  // lives as long as the address
                                                                                         // space
  return *kMemory;
}

}  // namespace tidemark::phantom
