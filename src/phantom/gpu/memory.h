// The memory of the phantom GPUs: addresses without memory behind them, and the amount taken by the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "phantom/gpu/address_space.h"

namespace tidemark::phantom {

/// Copies up to this many bytes are kept, so that small values that a program passes through the GPU arrive (masks,
/// labels, indices). Larger ones are dropped.
inline constexpr std::size_t kKnownCopyBytes = 1 << 20;
/// The same between ranks, and while more than kManyKnownBytes are known.
inline constexpr std::size_t kKeptCopyBytes = 64 << 10;
inline constexpr std::size_t kManyKnownBytes = 512 << 20;

/// The smallest piece of memory that a driver maps.
inline constexpr std::size_t kGranularity = 2 << 20;

// All functions are thread-safe.

/// Takes `bytes` on `device` as cudaMalloc does: rounded to the driver's granularity, nullptr if the device has not
/// enough memory left. `caller`: an address in the requesting code, whose library is charged.
[[nodiscard]] void* allocate_device(int device, std::size_t bytes, const void* caller = nullptr);
/// Frees memory of allocate_device(). False if `pointer` is not such memory.
bool free_device(void* pointer);

/// Takes physical memory without an address (cuMemCreate): a handle, or 0 if the device has not enough memory left.
[[nodiscard]] std::uint64_t create_physical(int device, std::size_t bytes, const void* caller = nullptr);
/// Frees memory of create_physical(). False if there is no such handle.
bool release_physical(std::uint64_t handle);

/// A file descriptor with which another process can use this memory without counting it; below 0 for an unknown handle,
/// or with errno set. The caller closes it.
[[nodiscard]] int share_physical(std::uint64_t handle);
/// Opens memory of another process: a handle for release_physical, or 0 if the descriptor is not of that kind, or of a
/// device that this process does not see.
[[nodiscard]] std::uint64_t open_physical(int descriptor);

/// Addresses without memory (cuMemAddressReserve): nullptr if there are not enough left.
[[nodiscard]] void* reserve_addresses(std::size_t bytes, std::size_t alignment);
void free_addresses(void* pointer, std::size_t bytes);
/// Records that addresses belong to a device (cuMemMap), for device_of.
void map_addresses(void* pointer, std::size_t bytes, int device);

/// The allocation that holds an address of a device.
struct Allocation {
  void* start;
  std::size_t bytes;
  int device;
  std::optional<std::size_t> library = {};  ///< the library that took it itself, see count_taken()
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

/// Copies memory of which either side may be on a device. Small copies keep their bytes; large ones are dropped, and
/// read as zeros on the host.
void copy(void* to, const void* from, std::size_t bytes);
void fill(void* to, int value, std::size_t bytes);

/// This thread reads this truth value at the address if it is unknown, until PyTorch's allocator uses the block again.
void expect_truth(const void* address, bool value);

/// Whether this thread reads numbers with fractions, such as a loss: programs print them, and rarely decide by them, so
/// they do not count as results that were read (count_read).
void read_fractions(bool reads);

/// The next copy of an unknown value of 1, 4 or 8 bytes to the host, on this thread, gets this number: an operator
/// reads the size of its result, or its result. Nullopt: none does.
void answer_next_read(std::optional<std::int64_t> number);

/// The file. All zeros at first; places are assigned in order and reused when their process has ended.
struct MemoryTable {
  static constexpr int kMaxProcesses = 1024;

  struct Process {
    std::int32_t number;  ///< getpid(); 0: the place was never used
    bool context[kMaximumDevices];
    std::uint64_t bytes[kMaximumDevices];  ///< without the context
  };

  Process processes[kMaxProcesses];
  std::uint64_t peaks[kMaximumDevices];  ///< peak of all processes on a device, including contexts
};

}  // namespace tidemark::phantom
