// Addresses of device memory: one large range of the process that is reserved and, but for small copies, never touched.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <mutex>

namespace tidemark::phantom {

inline constexpr int kMaximumDevices = 64;

[[nodiscard]] constexpr std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Hands out ranges of addresses in the order in which NVIDIA's driver does, as measured on an H200 (driver 580): from
/// regions of whole 32 MiB, the newest first, the lowest free place in each; a new region lies as high as there is
/// room. The order matters: of free blocks of one size, PyTorch's allocator takes the one at the lowest address.
/// Thread-safe.
class AddressSpace {
 public:
  AddressSpace();

  /// None when no range of `bytes` is left. `alignment` is a power of two, at most kGranularity for what is smaller
  /// than a region.
  [[nodiscard]] void* reserve(std::size_t bytes, std::size_t alignment);
  /// Gives back a range; what was written there is forgotten.
  void release(void* pointer, std::size_t bytes);
  /// What the driver does when cuBLAS or cuDNN is initialized: stacks of kernels move to a region of their own, and
  /// their former addresses are free. Does nothing the second time.
  void move_stacks();
  /// Lock-free.
  [[nodiscard]] bool contains(const void* pointer) const { return pointer >= start_ && pointer < end_; }

 private:
  struct Region {
    char* start;
    std::size_t bytes;
    std::map<char*, std::size_t> free;  // by start; neighbours are joined
  };
  Region* add_region(std::size_t bytes, std::size_t alignment);

  std::mutex mutex_;
  char* start_ = nullptr;
  char* end_ = nullptr;
  Region* context_ = nullptr;  // until move_stacks()
  Region* stacks_ = nullptr;
  std::list<Region> regions_;          // newest first
  std::map<char*, std::size_t> gaps_;  // between regions
};

[[nodiscard]] AddressSpace& address_space();

}  // namespace tidemark::phantom
