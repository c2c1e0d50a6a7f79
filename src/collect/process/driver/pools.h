// What stream-ordered pools and CUDA graphs have taken from each device.
//
// A pool takes memory from the device in large pieces and gives it back by itself at a later synchronization, so not
// its allocations tell what it holds but the driver's own figure, which is asked for after calls that can change it.
// Thread-safe, without locks; calls the driver.
#pragma once

#include "collect/process/driver/cupti_api.h"
#include "collect/process/native/unwinder.h"

namespace tidemark::process::cuda {

/// The functions of the driver that are asked; all found before the first call here.
struct DriverFunctions {
  CtxGetDevice* context_device;
  DeviceGetMemPool* device_pool;
  MemPoolGetAttribute* pool_attribute;
  DeviceGetGraphMemAttribute* graph_attribute;
};
extern DriverFunctions driver;

/// `device` is -1 for a pool of host memory.
void pool_created(MemoryPool pool, Device device) noexcept;
/// Memory was taken from the pool, or (null) from the device's current one. A pool that was not seen being created is
/// taken for the device's.
void pool_used(MemoryPool pool, Device device, const NativeContext& caller) noexcept;
/// A graph with allocations was made: its memory is looked at after launches from now on.
void graph_memory_expected() noexcept;
/// A graph was launched, or its memory trimmed.
void graph_memory_used(Device device, const NativeContext& caller) noexcept;
/// Memory was given back to a pool, which may shrink at the next synchronization.
void pool_memory_freed() noexcept;
/// Something was synchronized or trimmed.
void check_pool_sizes(const NativeContext& caller) noexcept;
/// Before a pool is destroyed: the driver is not asked about it from here on. Waits for threads that are asking.
void pool_destroy_begins(MemoryPool pool) noexcept;
/// It was destroyed, by a call made at these ticks.
void pool_destroyed(MemoryPool pool, std::uint64_t made) noexcept;
/// The driver did not destroy it.
void pool_destroy_failed(MemoryPool pool) noexcept;
/// Whether any pool was used so far.
[[nodiscard]] bool pools_are_used() noexcept;

}  // namespace tidemark::process::cuda
