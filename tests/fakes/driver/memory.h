// The memory of a driver: GPUs' bytes, page-locked and managed memory, physical memory and its mappings, pools, graphs.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "books.h"
#include "driver_api.h"

namespace fakes {

/// Numbers to give out, each used once at a time; returned ones are reused first, like in the real drivers, which makes
/// a recorder's mistakes visible.
class Numbers {
 public:
  explicit Numbers(std::uint64_t first) : next_(first) {}
  std::uint64_t take(std::uint64_t count);
  void give_back(std::uint64_t first, std::uint64_t count) { free_[count].push_back(first); }

 private:
  std::uint64_t next_;
  std::map<std::uint64_t, std::vector<std::uint64_t>> free_;  // by count
};

/// Each method is a call of the driver and returns its CUresult. Thread-safe.
class Memory {
 public:
  Memory(int devices, std::uint64_t device_bytes);

  Result allocate(const std::string& account, std::uint64_t bytes, std::uint64_t* address);
  /// Page-locks the program's own memory.
  Result register_host(std::uint64_t address, std::uint64_t bytes);
  /// The block's pool, if any, releases memory above its threshold.
  Result free(std::uint64_t address);
  /// In the order of a stream: a block outside of pools is free at the next synchronization of its device.
  Result free_async(Device device, std::uint64_t address);

  Result reserve_addresses(std::uint64_t bytes, DevicePointer* address);
  Result free_addresses(DevicePointer address, std::uint64_t bytes);
  /// Physical memory, which is released once there is no reference to it and nothing is mapped from it.
  Result create(const std::string& account, std::uint64_t bytes, AllocationHandle* handle);
  /// Physical memory that takes none of this process: of another one, or a multicast object.
  Result adopt(AllocationHandle* handle);
  Result retain(DevicePointer address, AllocationHandle* handle);
  Result release(AllocationHandle handle);
  Result map(DevicePointer address, std::uint64_t bytes, AllocationHandle handle);
  Result unmap(DevicePointer address, std::uint64_t bytes);

  MemoryPool default_pool(Device device);
  MemoryPool create_pool(const std::string& account);
  Result destroy_pool(MemoryPool pool);
  Result set_threshold(MemoryPool pool, std::uint64_t bytes);
  /// std::nullopt if there is no such pool.
  std::optional<std::uint64_t> reserved(MemoryPool pool);
  Result allocate_from(MemoryPool pool, std::uint64_t bytes, DevicePointer* address);
  /// Pools keep at least `least_bytes` of unused memory.
  Result trim(MemoryPool pool, std::uint64_t least_bytes);
  /// Pools of the device, and those of the host, release memory above their threshold; blocks freed in a stream become
  /// free.
  void synchronized(Device device);

  /// A graph with allocations of `bytes` in total is launched. Graphs share their reserved memory.
  Result launch(Device device, std::uint64_t bytes);
  Result trim_graphs(Device device);
  std::uint64_t graph_reserved(Device device);

  /// The end of a device's context, and of its allocations.
  void reset(Device device);

 private:
  struct Pool {
    std::string account;
    std::uint64_t reserved = 0;
    std::uint64_t used = 0;
    std::uint64_t threshold = 0;
  };
  struct Block {
    std::string account;
    std::uint64_t bytes = 0;
    Pool* pool = nullptr;       ///< the pool has the bytes, the account does not
    bool address_ours = false;  ///< given out by this driver, to be reused
  };
  struct Physical {
    std::string account;  ///< empty for memory of another process
    std::uint64_t bytes = 0;
    std::uint64_t references = 1;
    std::uint64_t mappings = 0;
  };
  struct Mapping {
    std::uint64_t bytes = 0;
    AllocationHandle handle = 0;
  };

  bool fits(const std::string& account, std::uint64_t bytes) const;
  Result resize(Pool& pool, std::uint64_t reserved);
  void shrink(Pool& pool, std::uint64_t least_bytes);
  void let_go_if_unused(AllocationHandle handle);
  void forget(std::unordered_map<std::uint64_t, Block>::iterator block);

  std::mutex lock_;
  Books books_;
  std::uint64_t device_bytes_;
  Numbers addresses_{0x7F00'0000'0000};
  Numbers handles_{0x5000'0000};
  std::unordered_map<std::uint64_t, Block> blocks_;
  std::unordered_map<AllocationHandle, Physical> physical_;
  std::unordered_map<std::uint64_t, Device> freed_later_;  // by address
  std::map<DevicePointer, Mapping> mappings_;
  std::map<MemoryPool, Pool> pools_;
  std::vector<MemoryPool> default_pools_;
  std::vector<std::uint64_t> graphs_;  // bytes reserved, by device
  std::uintptr_t next_pool_ = 0x6000'0000;
};

std::string device_account(Device device);
std::string managed_account(Device device);
inline constexpr char kHostAccount[] = "cuda-host";

}  // namespace fakes
