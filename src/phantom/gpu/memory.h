// The memory of the phantom GPUs: addresses that nothing stands behind, and the count of what the program took.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "phantom/gpu/address_space.h"

namespace tidemark::phantom {

/// Copies up to this many bytes are kept, so that what a program hands itself over through the GPU arrives (shapes,
/// seeds, flags). Larger ones are dropped.
inline constexpr std::size_t kKeptCopyBytes = 64 << 10;

/// The smallest piece of memory that a driver maps.
inline constexpr std::size_t kGranularity = 2 << 20;

// All functions are thread-safe.

/// Takes `bytes` on `device` as cudaMalloc does: rounded to the driver's granularity, none when the device has not that
/// much left. `caller`: an address of the code that asks for it, whose library it counts for.
[[nodiscard]] void* allocate_device(int device, std::size_t bytes, const void* caller = nullptr);
/// Gives back what allocate_device returned. False when `pointer` is nothing of the kind.
bool free_device(void* pointer);

/// Takes physical memory without an address (cuMemCreate): a handle, or 0 when the device has not that much left.
[[nodiscard]] std::uint64_t create_physical(int device, std::size_t bytes, const void* caller = nullptr);
/// Gives back what create_physical took. False when there is no such handle.
bool release_physical(std::uint64_t handle);

/// A file descriptor by which another process takes part in such memory, as that process counts nothing for it; below 0
/// for no such handle, or with errno set. The caller closes it.
[[nodiscard]] int share_physical(std::uint64_t handle);
/// Takes part in memory of another process: a handle for release_physical, or 0 for what is no such descriptor, or of a
/// device that this process does not see.
[[nodiscard]] std::uint64_t open_physical(int descriptor);

/// Addresses without memory (cuMemAddressReserve): none when there are not so many left.
[[nodiscard]] void* reserve_addresses(std::size_t bytes, std::size_t alignment);
void free_addresses(void* pointer, std::size_t bytes);
/// Says that addresses belong to a device (cuMemMap), for device_of.
void map_addresses(void* pointer, std::size_t bytes, int device);

/// The allocation that holds an address of a device.
struct Allocation {
  void* start;
  std::size_t bytes;
  int device;
  std::optional<std::size_t> library = {};  ///< that took it itself, as count_taken() says
};
[[nodiscard]] std::optional<Allocation> find_allocation(const void* pointer);
/// Whether `pointer` is an address of any phantom GPU, allocated or not. Lock-free.
[[nodiscard]] bool is_device_address(const void* pointer);

/// Pinned host memory: real memory of the process, counted as pinned.
[[nodiscard]] void* allocate_pinned(std::size_t bytes);
bool free_pinned(void* pointer);
bool register_pinned(void* pointer, std::size_t bytes);
bool unregister_pinned(void* pointer);
[[nodiscard]] bool is_pinned(const void* pointer);

/// What a copy would do where either side may be a device. Small pieces keep their bytes; large ones are dropped, and
/// read as zeros on the host.
void copy(void* to, const void* from, std::size_t bytes);
void fill(void* to, int value, std::size_t bytes);

/// The file. All zeros at first; places are given out in order and used again when their process has ended.
struct MemoryTable {
  static constexpr int kMaxProcesses = 1024;

  struct Process {
    std::int32_t number;  ///< getpid(); 0: the place was never used
    bool context[kMaximumDevices];
    std::uint64_t bytes[kMaximumDevices];  ///< without the context
  };

  Process processes[kMaxProcesses];
  std::uint64_t peaks[kMaximumDevices];  ///< the most that all processes held of a device at once, with their contexts
};

}  // namespace tidemark::phantom
