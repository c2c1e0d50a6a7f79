// Addresses of device memory: ranges of the process that are reserved and, but for small copies, never touched.
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

/// Where ranges of addresses come from: pages of the process, or a test's own.
struct AddressSource {
  /// `bytes` anywhere; nullptr when there are not so many left.
  void* (*map)(std::size_t bytes);
  void (*unmap)(void* start, std::size_t bytes);
};
/// What mmap() chooses, as NVIDIA's driver does.
[[nodiscard]] const AddressSource& addresses_of_process();

/// Hands out ranges of addresses in the order in which NVIDIA's driver does, as measured on an H200 (driver 580): from
/// regions of whole 32 MiB, the newest first, the lowest free place in each; a new region lies where mmap() puts it, so
/// that what the process itself maps and unmaps matters as it does there. The order matters: of free blocks of one
/// size, PyTorch's allocator takes the one at the lowest address. Thread-safe.
class AddressSpace {
 public:
  explicit AddressSpace(const AddressSource& source = addresses_of_process());

  /// None when no range of `bytes` is left. `alignment` is a power of two.
  [[nodiscard]] void* reserve(std::size_t bytes, std::size_t alignment);
  /// Gives back a range; what was written there is forgotten.
  void release(void* pointer, std::size_t bytes);
  /// Maps `bytes` of the process for good, as a library that is loaded does; they are no device memory.
  void occupy(std::size_t bytes) { source_.map(bytes); }
  /// Lock-free.
  [[nodiscard]] bool contains(const void* pointer) const;

 private:
  struct Region {
    char* start;
    std::size_t bytes;
    std::map<char*, std::size_t> free;  // by start; neighbours are joined
  };
  Region* add_region(std::size_t bytes, std::size_t alignment);
  void mark(const char* start, std::size_t bytes, bool taken);

  const AddressSource source_;
  std::mutex mutex_;
  std::list<Region> regions_;  // newest first
  // A bit for each 32 MiB of the 128 TiB that a process may have.
  std::unique_ptr<std::array<std::atomic<std::uint64_t>, std::size_t{1} << 16>> taken_;
};

[[nodiscard]] AddressSpace& address_space();

}  // namespace tidemark::phantom
