#include "collect/process/driver/driver_calls.h"

#include <errno.h>

#include <array>
#include <atomic>

#include "collect/process/driver/driver_record.h"
#include "collect/process/driver/pools.h"

namespace tidemark::process::cuda {
namespace {

using ring::DriverCall;

constexpr std::array kWatched = {
    id::CtxSynchronize,
    id::MemFreeHost,
    id::MemHostAlloc,
    id::EventSynchronize,
    id::StreamSynchronize,
    id::MemAlloc_v2,
    id::MemAllocPitch_v2,
    id::MemFree_v2,
    id::MemHostAlloc_v2,
    id::MemAllocHost_v2,
    id::MemHostRegister,
    id::MemHostUnregister,
    id::MemAllocManaged,
    id::MemHostRegister_v2,
    id::StreamSynchronize_ptsz,
    id::GraphLaunch,
    id::GraphLaunch_ptsz,
    id::DevicePrimaryCtxReset_v2,
    id::MemCreate,
    id::MemRelease,
    id::MemMap,
    id::MemUnmap,
    id::MemImportFromShareableHandle,
    id::MemRetainAllocationHandle,
    id::MemAllocAsync,
    id::MemAllocAsync_ptsz,
    id::MemFreeAsync,
    id::MemFreeAsync_ptsz,
    id::MemPoolTrimTo,
    id::MemPoolCreate,
    id::MemPoolDestroy,
    id::MemAllocFromPoolAsync,
    id::MemAllocFromPoolAsync_ptsz,
    id::GraphAddMemAllocNode,
    id::DeviceGraphMemTrim,
    id::MulticastCreate,
};

template <typename Parameters>
const Parameters& parameters(const CallbackData& data) noexcept {
  return *static_cast<const Parameters*>(data.parameters);
}

std::uint64_t number(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);
}

// By the context's number, from 1 on: the device + 1; 0 = not asked yet.
std::array<std::atomic<std::uint8_t>, 256> device_of_context;

/// The device of the context that is current.
Device device_of(const CallbackData& data) noexcept {
  const bool kept = data.context_uid < device_of_context.size();
  if (kept) {
    const std::uint8_t known = device_of_context[data.context_uid].load(std::memory_order_relaxed);
    if (known != 0) return known - 1;
  }
  Device device = 0;
  if (driver.context_device(&device) != kSuccess || device < 0 || device > 127) return -1;
  if (kept) {
    device_of_context[data.context_uid].store(static_cast<std::uint8_t>(device + 1), std::memory_order_relaxed);
  }
  return device;
}

// While a call takes or gives memory, what is used changes at a moment that nobody knows. Taking 60 GiB takes 0.1 s.
constexpr std::uint64_t kSlowTicks = 1'000'000;  // 1 ms, or less where ticks are shorter than a nanosecond

bool changes_memory(std::uint32_t id) noexcept {
  switch (id) {
    case id::MemAlloc_v2:
    case id::MemAllocPitch_v2:
    case id::MemFree_v2:
    case id::MemCreate:
    case id::MemRelease:
    case id::MemUnmap:
    case id::MemAllocAsync:
    case id::MemAllocAsync_ptsz:
    case id::MemAllocFromPoolAsync:
    case id::MemAllocFromPoolAsync_ptsz:
    case id::MemPoolTrimTo:
      return true;
    default:
      return false;
  }
}

void record_if_slow(const CallbackData& data) noexcept {
  const std::uint64_t began = *data.correlation_data;
  if (ticks(session.clock) - began >= kSlowTicks) record_driver_call(DriverCall::slow, -1, {began});
}

// What is given back is recorded before it is: afterwards another thread may get the same address.
void on_enter(std::uint32_t id, const CallbackData& data) noexcept {
  switch (id) {
    case id::MemFree_v2:
      if (const DevicePointer address = parameters<FreeParameters>(data).address; address != 0)
        record_driver_call(DriverCall::free, -1, {address, pools_are_used() ? 1U : 0U});
      return;
    case id::MemFreeAsync:
    case id::MemFreeAsync_ptsz:  // takes what cuMemAlloc gave too
      return record_driver_call(DriverCall::free, -1, {parameters<FreeParameters>(data).address, 1});
    case id::MemFreeHost:
    case id::MemHostUnregister:
      return record_driver_call(DriverCall::free, -1, {number(parameters<FreeHostParameters>(data).address), 0});
    case id::MemRelease:
      return record_driver_call(DriverCall::release, -1, {parameters<ReleaseParameters>(data).handle});
    case id::MemUnmap: {
      const auto& unmap = parameters<UnmapParameters>(data);
      return record_driver_call(DriverCall::unmap, -1, {unmap.address, unmap.bytes});
    }
    case id::MemPoolDestroy:
      return pool_destroyed(parameters<PoolParameters>(data).pool);
    case id::DevicePrimaryCtxReset_v2:
      return record_driver_call(DriverCall::reset_device, parameters<DeviceParameters>(data).device, {});
    default:
      return;
  }
}

void on_allocation(std::uint32_t id, const CallbackData& data, const NativeContext& caller) noexcept {
  const auto& call = parameters<AllocateParameters>(data);
  const DriverCall kind = id == id::MemAllocManaged ? DriverCall::allocate_managed : DriverCall::allocate;
  record_driver_allocation(kind, device_of(data), {*call.address, call.bytes}, caller);
}

void on_pitch_allocation(const CallbackData& data, const NativeContext& caller) noexcept {
  const auto& call = parameters<AllocatePitchParameters>(data);
  record_driver_allocation(DriverCall::allocate, device_of(data), {*call.address, *call.pitch * call.height}, caller);
}

void on_host_allocation(const CallbackData& data, const NativeContext& caller) noexcept {
  const auto& call = parameters<AllocateHostParameters>(data);
  record_driver_allocation(DriverCall::allocate_host, -1, {number(*call.address), call.bytes}, caller);
}

void on_host_registration(const CallbackData& data, const NativeContext& caller) noexcept {
  const auto& call = parameters<RegisterHostParameters>(data);
  record_driver_allocation(DriverCall::allocate_host, -1, {number(call.address), call.bytes}, caller);
}

/// The device of a place, -1 where it is the host.
Device device_at(const Location& location) noexcept {
  return location.type == kLocationDevice ? location.id : -1;
}

void on_create(const CallbackData& data, const NativeContext& caller) noexcept {
  const auto& call = parameters<CreateParameters>(data);
  record_driver_allocation(DriverCall::create, device_at(call.properties->location), {*call.handle, call.bytes},
                           caller);
}

void on_map(const CallbackData& data) noexcept {
  const auto& call = parameters<MapParameters>(data);
  record_driver_call(DriverCall::map, -1, {call.address, call.bytes, call.handle});
}

void on_pool_creation(const CallbackData& data) noexcept {
  const auto& call = parameters<CreatePoolParameters>(data);
  pool_created(*call.pool, device_at(call.properties->location));
}

// After calls that succeeded.
void on_exit(std::uint32_t id, const CallbackData& data, const NativeContext& caller) noexcept {
  switch (id) {
    case id::MemAlloc_v2:
    case id::MemAllocManaged:
      return on_allocation(id, data, caller);
    case id::MemAllocPitch_v2:
      return on_pitch_allocation(data, caller);
    case id::MemHostAlloc:
    case id::MemHostAlloc_v2:
    case id::MemAllocHost_v2:
      return on_host_allocation(data, caller);
    case id::MemHostRegister:
    case id::MemHostRegister_v2:
      return on_host_registration(data, caller);
    case id::MemCreate:
      return on_create(data, caller);
    case id::MemMap:
      return on_map(data);
    case id::MemImportFromShareableHandle:
    case id::MemRetainAllocationHandle:
    case id::MulticastCreate:
      return record_driver_call(DriverCall::adopt, -1, {*parameters<AdoptParameters>(data).handle});
    case id::MemPoolCreate:
      return on_pool_creation(data);
    case id::MemAllocAsync:
    case id::MemAllocAsync_ptsz:
      return pool_used(nullptr, device_of(data), caller);
    case id::MemAllocFromPoolAsync:
    case id::MemAllocFromPoolAsync_ptsz:
      return pool_used(parameters<AllocateFromPoolParameters>(data).pool, device_of(data), caller);
    case id::MemFreeAsync:
    case id::MemFreeAsync_ptsz:
      return pool_memory_freed();
    case id::MemPoolTrimTo:
    case id::MemFree_v2:  // of what a pool gave: the pool shrinks at once
      pool_memory_freed();
      return pools_may_have_shrunk(caller);
    case id::CtxSynchronize:
    case id::EventSynchronize:
    case id::StreamSynchronize:
    case id::StreamSynchronize_ptsz:
      return pools_may_have_shrunk(caller);
    case id::GraphAddMemAllocNode:
      return graph_memory_expected();
    case id::GraphLaunch:
    case id::GraphLaunch_ptsz:
      return graph_memory_used(device_of(data), caller);
    case id::DeviceGraphMemTrim:
      return graph_memory_used(parameters<DeviceParameters>(data).device, caller);
    default:
      return;
  }
}

}  // namespace

std::span<const std::uint32_t> watched_calls() noexcept {
  return kWatched;
}

void on_driver_call(void* /*user_data*/, std::uint32_t domain, std::uint32_t id, const CallbackData* data) {
  if (domain != kDriverApiDomain) return;
  const int saved = errno;
  if (data->site == Site::enter) {
    if (changes_memory(id)) *data->correlation_data = ticks(session.clock);
    on_enter(id, *data);
  } else {
    if (*static_cast<const Result*>(data->return_value) == kSuccess) on_exit(id, *data, native_caller_context());
    if (changes_memory(id)) record_if_slow(*data);
  }
  errno = saved;
}

}  // namespace tidemark::process::cuda
