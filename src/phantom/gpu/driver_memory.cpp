#include "phantom/gpu/driver_memory.h"

#include <cstdio>
#include <cstdlib>

namespace tidemark::phantom {
namespace {

constexpr std::size_t kMiB = 1 << 20;
constexpr std::size_t kKiB = 1 << 10;
constexpr std::size_t kPiece = 2;  // MiB

// The context's own memory, in the order in which it is taken.
constexpr std::size_t kContext = 32;
constexpr std::size_t kContextTables = 70;
constexpr std::size_t kStacks = 414;       // of kernels that call nothing
constexpr std::size_t kMovedStacks = 504;  // of kernels that may call assert() or printf()
constexpr std::size_t kPrintfBuffer = 10;
constexpr std::size_t kCublasHandle = 64;
constexpr int kCudnnHandlePieces = 4;

constexpr std::size_t kCodePiece = 2 * kMiB;
// Of the first piece of code; the driver's own takes the rest. This and the sizes of cuBLAS's kernels were fitted to
// when the driver took its second piece, in 53 programs.
constexpr std::size_t kFirstCode = 342 * kKiB;
constexpr std::size_t kSingleProduct = 30 * kKiB;
constexpr std::size_t kLargeSingleProduct = 112 * kKiB;
constexpr std::size_t kHalfProduct = 7 * kKiB;
constexpr std::size_t kLargeHalfProduct = 15 * kKiB;
constexpr std::size_t kLtProducts = 120 * kKiB;
// Results that are larger are computed in larger tiles, by other kernels: 132 multiprocessors, a tile of each.
constexpr long long kLargeSingleResult = 132LL * 128 * 64;
constexpr long long kLargeHalfResult = 132LL * 128 * 96;

}  // namespace

DriverMemory::DriverMemory(AddressSpace& addresses) : addresses_(addresses) {
  const bool mapped = take(kContext) != nullptr && take(kContextTables) != nullptr;
  take(kPiece);
  stacks_ = take(kStacks);
  if (mapped && stacks_ != nullptr) return;
  std::fputs("tidemark: the phantom GPU cannot reserve addresses; raise the limit of virtual memory (ulimit -v)\n",
             stderr);
  std::_Exit(2);
}

void* DriverMemory::take(std::size_t mebibytes) {
  return addresses_.reserve(mebibytes * kMiB, kPiece * kMiB);
}

void DriverMemory::take_once(bool& taken) {
  if (!taken) take(kPiece);
  taken = true;
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
    stacks_ = take(kMovedStacks);
    take(kPiece);
  }
  if (kernel.prints && !printf_buffer_) {
    printf_buffer_ = true;
    take(kPrintfBuffer);
  }
}

void DriverMemory::multiply(const Product& product) {
  const std::lock_guard lock(mutex_);
  const bool large = product.rows * product.columns > (product.single ? kLargeSingleResult : kLargeHalfResult);
  if (!products_.insert({product.single ? 1 : 0, product.transposed, large ? 1 : 0}).second) return;
  const std::size_t bytes =
      product.single ? (large ? kLargeSingleProduct : kSingleProduct) : (large ? kLargeHalfProduct : kHalfProduct);
  load_code(bytes);
}

void DriverMemory::multiply_lt() {
  const std::lock_guard lock(mutex_);
  if (!lt_code_) load_code(kLtProducts);
  lt_code_ = true;
}

void DriverMemory::create_cublas_handle() {
  const std::lock_guard lock(mutex_);
  take_once(library_memory_);
  take(kCublasHandle);
}

void DriverMemory::create_cudnn_handle() {
  const std::lock_guard lock(mutex_);
  take_once(library_memory_);
  for (int piece = 0; piece < kCudnnHandlePieces; ++piece) take(kPiece);
  take_once(host_memory_);
}

void DriverMemory::pin_host_memory() {
  const std::lock_guard lock(mutex_);
  take_once(host_memory_);
}

DriverMemory& driver_memory() {
  static auto* const kMemory = new DriverMemory(address_space());  // as long as the address space
  return *kMemory;
}

}  // namespace tidemark::phantom
