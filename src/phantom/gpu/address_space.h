// Addresses of device memory: address ranges of the process that are reserved and never touched, except for small
// copies.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>

namespace tidemark::phantom {

inline constexpr int kMaximumDevices = 64;

[[nodiscard]] constexpr std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Source of address ranges: pages of the process, or a test's own.
struct AddressSource {
  /// `bytes` anywhere; nullptr if there are not enough left.
  void* (*map)(std::size_t bytes);
  void (*unmap)(void* start, std::size_t bytes);
};
/// Addresses chosen by mmap(), as NVIDIA's driver uses.
[[nodiscard]] const AddressSource& addresses_of_process();

/// Allocates address ranges in the same order as NVIDIA's driver, as measured on an H200 (driver 580): from regions of
/// multiples of 32 MiB, the newest first, the lowest free place in each; mmap() chooses the place of a new region, so
/// that the process's own mappings have the same effect. The order matters: of free blocks of one size, PyTorch's
/// allocator takes the one at the lowest address. Thread-safe.
class AddressSpace {
 public:
  explicit AddressSpace(const AddressSource& source = addresses_of_process());

  /// nullptr if no range of `bytes` is left. `alignment` is a power of two.
  [[nodiscard]] void* reserve(std::size_t bytes, std::size_t alignment);
  /// Frees a range; its content is lost.
  void release(void* pointer, std::size_t bytes);
  /// Maps `bytes` of the process permanently, as a loaded library does; they are not device memory.
  void occupy(std::size_t bytes) { source_.map(bytes); }
  /// Lock-free.
  [[nodiscard]] bool contains(const void* pointer) const;

 private:
  struct Region {
    char* start;
    std::size_t bytes;
    std::map<char*, std::size_t> free;  // by start; neighbours are merged
  };
  Region* add_region(std::size_t bytes, std::size_t alignment);
  void mark(const char* start, std::size_t bytes, bool taken);

  const AddressSource source_;
  std::mutex mutex_;
  std::list<Region> regions_;  // newest first
  // A bit for each 32 MiB of the 128 TiB that a process can address.
  std::unique_ptr<std::array<std::atomic<std::uint64_t>, std::size_t{1} << 16>> taken_;
};

[[nodiscard]] AddressSpace& address_space();

}  // namespace tidemark::phantom
