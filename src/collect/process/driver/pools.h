// Memory that stream-ordered pools and CUDA graphs have taken from each device.
//
// A pool takes memory from the device in large pieces and releases it by itself at a later synchronization, so its size
// does not follow from its allocations. It is the driver's own figure, queried after calls that can change it.
// Thread-safe, without locks; calls the driver.
#pragma once

#include "collect/process/driver/cupti_api.h"
#include "collect/process/native/unwinder.h"

namespace tidemark::process::cuda {

/// The functions of the driver that are called; all are looked up before the first call here.
struct DriverFunctions {
  CtxGetDevice* context_device;
  DeviceGetMemPool* device_pool;
  MemPoolGetAttribute* pool_attribute;
  DeviceGetGraphMemAttribute* graph_attribute;
};
extern DriverFunctions driver;

/// `device` is -1 for a pool of host memory.
void pool_created(MemoryPool pool, Device device) noexcept;
/// Memory was taken from the pool, or (null) from the device's current one. A pool without a recorded creation is
/// assumed to be the device's.
void pool_used(MemoryPool pool, Device device, const NativeContext& caller) noexcept;
/// A graph with allocations was made: its memory is checked after launches from now on.
void graph_memory_expected() noexcept;
/// A graph was launched, or its memory trimmed.
void graph_memory_used(Device device, const NativeContext& caller) noexcept;
/// Memory was returned to a pool, which may shrink at the next synchronization.
void pool_memory_freed() noexcept;
/// A synchronization or trim happened.
void check_pool_sizes(const NativeContext& caller) noexcept;
/// Call it before a pool is destroyed: no thread queries it from here on. Waits for threads that are querying it.
void pool_destroy_begins(MemoryPool pool) noexcept;
/// The pool was destroyed, by a call made at these ticks.
void pool_destroyed(MemoryPool pool, std::uint64_t made) noexcept;
/// The driver did not destroy it.
void pool_destroy_failed(MemoryPool pool) noexcept;
/// Whether any pool was used so far.
[[nodiscard]] bool pools_are_used() noexcept;

}  // namespace tidemark::process::cuda
