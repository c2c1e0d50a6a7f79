#include "collect/process/driver/driver_calls.h"

#include <errno.h>

#include <array>
#include <atomic>

#include "collect/process/driver/array_size.h"
#include "collect/process/driver/driver_record.h"
#include "collect/process/driver/pools.h"

namespace tidemark::process::cuda {

namespace {

constexpr std::array kWatched = {
    id::CtxSynchronize,
    id::MemFreeHost,
    id::MemHostAlloc,
    id::ArrayDestroy,
    id::EventSynchronize,
    id::StreamSynchronize,
    id::MemAlloc_v2,
    id::MemAllocPitch_v2,
    id::MemFree_v2,
    id::MemHostAlloc_v2,
    id::ArrayCreate_v2,
    id::Array3DCreate_v2,
    id::MemAllocHost_v2,
    id::MemHostRegister,
    id::MemHostUnregister,
    id::MipmappedArrayCreate,
    id::MipmappedArrayDestroy,
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
    id::GraphUpload,
    id::GraphUpload_ptsz,
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
    id::GraphAddNode,
    id::GraphAddNode_v2,
};

// While a call takes or releases device memory, the used memory changes at an unknown moment. Taking 60 GiB takes 0.1
// s.
constexpr std::uint64_t kSlowTicks = 1'000'000;  // 1 ms, or less if ticks are shorter than a nanosecond

/// Properties of a recorded call.
struct Timing {
  bool gives_back;  ///< its record has the time when it was made; see ring/layout.h for the reason
  bool how_long;
};

Timing timing_of(std::uint32_t id) noexcept {
  switch (id) {
    case id::MemAlloc_v2:
    case id::MemAllocPitch_v2:
    case id::MemCreate:
    case id::MemAllocAsync:
    case id::MemAllocAsync_ptsz:
    case id::MemAllocFromPoolAsync:
    case id::MemAllocFromPoolAsync_ptsz:
    case id::MemPoolTrimTo:
    case id::ArrayCreate_v2:
    case id::Array3DCreate_v2:
    case id::MipmappedArrayCreate:
      return {false, true};
    case id::MemFree_v2:
    case id::MemRelease:
    case id::MemUnmap:
    case id::MemPoolDestroy:
    case id::ArrayDestroy:
    case id::MipmappedArrayDestroy:
    case id::DevicePrimaryCtxReset_v2:
      return {true, true};
    case id::MemFreeAsync:
    case id::MemFreeAsync_ptsz:
    case id::MemFreeHost:
    case id::MemHostUnregister:
      return {true, false};
    default:
      return {false, false};
  }
}

/// `returned`: the ticks of the call's record, 0 if it has none.
void record_if_slow(const CallbackData& data, std::uint64_t returned) noexcept {
  if (returned == 0) returned = ticks(session.clock);
  if (call_ticks(data) != 0 && returned - call_ticks(data) >= kSlowTicks)
    record_driver_call(ring::DriverCall::slow, -1, {call_ticks(data)});
}

void on_pool_creation(const CallbackData& data) noexcept {
  const auto& call = parameters<CreatePoolParameters>(data);
  pool_created(*call.pool, device_at(call.properties->location));
}

// Calls after which a pool, or the memory of graphs, may have another size.
void on_pools(std::uint32_t id, const CallbackData& data, const NativeContext& caller) noexcept {
  switch (id) {
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
    case id::MemFree_v2:  // of a pool's memory: the pool shrinks at once
      pool_memory_freed();
      return check_pool_sizes(caller);
    case id::CtxSynchronize:
    case id::EventSynchronize:
    case id::StreamSynchronize:
    case id::StreamSynchronize_ptsz:
      return check_pool_sizes(caller);
    case id::GraphAddMemAllocNode:
    case id::GraphAddNode:  // of any kind
    case id::GraphAddNode_v2:
      return graph_memory_expected();
    case id::GraphLaunch:
    case id::GraphLaunch_ptsz:
    case id::GraphUpload:
    case id::GraphUpload_ptsz:
      return graph_memory_used(device_of(data), caller);
    case id::DeviceGraphMemTrim:
      return graph_memory_used(parameters<DeviceParameters>(data).device, caller);
    default:
      return;
  }
}

void on_enter(std::uint32_t id, const CallbackData& data) noexcept {
  if (id == id::MemPoolDestroy) pool_destroy_begins(parameters<PoolParameters>(data).pool);
  const Timing timing = timing_of(id);
  if (timing.gives_back || timing.how_long) call_ticks(data) = ticks(session.clock);
  if (timing.gives_back) set_driver_call_since(call_ticks(data));
}

void on_exit(std::uint32_t id, const CallbackData& data, const NativeContext& caller) noexcept {
  const bool succeeded = *static_cast<const Result*>(data.return_value) == kSuccess;
  const Timing timing = timing_of(id);
  std::uint64_t returned = 0;
  if (timing.gives_back) {
    if (succeeded) on_given_back(id, data);
    if (!succeeded && id == id::MemPoolDestroy) pool_destroy_failed(parameters<PoolParameters>(data).pool);
    set_driver_call_since(0);
  } else if (succeeded) {
    returned = on_taken(id, data, caller);
    on_physical(id, data);
  }
  if (succeeded) on_pools(id, data, caller);
  if (timing.how_long) record_if_slow(data, returned);
}

using ring::DriverCall;

std::uint64_t number(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);
}

// By the context's number, from 1 on: the device + 1; 0 = not queried yet.
std::array<std::atomic<std::uint8_t>, 256> device_of_context;

std::uint64_t on_allocation(std::uint32_t id, const CallbackData& data, const NativeContext& caller) noexcept {
  const auto& call = parameters<AllocateParameters>(data);
  const DriverCall kind = id == id::MemAllocManaged ? DriverCall::allocate_managed : DriverCall::allocate;
  return record_driver_allocation(kind, device_of(data), {*call.address, call.bytes}, caller);
}

std::uint64_t on_pitch_allocation(const CallbackData& data, const NativeContext& caller) noexcept {
  const auto& call = parameters<AllocatePitchParameters>(data);
  return record_driver_allocation(DriverCall::allocate, device_of(data), {*call.address, *call.pitch * call.height},
                                  caller);
}

std::uint64_t on_host_allocation(const CallbackData& data, const NativeContext& caller) noexcept {
  const auto& call = parameters<AllocateHostParameters>(data);
  return record_driver_allocation(DriverCall::allocate_host, -1, {number(*call.address), call.bytes}, caller);
}

std::uint64_t on_host_registration(const CallbackData& data, const NativeContext& caller) noexcept {
  const auto& call = parameters<RegisterHostParameters>(data);
  return record_driver_allocation(DriverCall::allocate_host, -1, {number(call.address), call.bytes}, caller);
}

std::atomic<bool> told_of_unknown_array;

std::uint64_t on_array(const CallbackData& data, const Array& array, const Array3DDescription& description,
                       unsigned levels, const NativeContext& caller) noexcept {
  std::uint64_t bytes = 0;
  const bool is_known = array_bytes(description, levels, &bytes);
  if (is_known && bytes > 0) {
    return record_driver_allocation(DriverCall::allocate, device_of(data), {number(array), bytes}, caller);
  }
  if (!is_known && !told_of_unknown_array.exchange(true, std::memory_order_relaxed)) record_driver_loss("array_format");
  return 0;
}

std::uint64_t on_array_creation(std::uint32_t id, const CallbackData& data, const NativeContext& caller) noexcept {
  if (id == id::ArrayCreate_v2) {
    const auto& call = parameters<CreateArrayParameters>(data);
    const ArrayDescription& flat = *call.description;
    return on_array(data, *call.array, {flat.width, flat.height, 0, flat.format, flat.channels, 0}, 1, caller);
  }
  const auto& call = parameters<CreateArray3DParameters>(data);
  const unsigned levels = id == id::MipmappedArrayCreate ? parameters<CreateMipmappedArrayParameters>(data).levels : 1;
  return on_array(data, *call.array, *call.description, levels, caller);
}

std::uint64_t on_create(const CallbackData& data, const NativeContext& caller) noexcept {
  const auto& call = parameters<CreateParameters>(data);
  return record_driver_allocation(DriverCall::create, device_at(call.properties->location), {*call.handle, call.bytes},
                                  caller);
}

void on_map(const CallbackData& data) noexcept {
  const auto& call = parameters<MapParameters>(data);
  record_driver_call(DriverCall::map, -1, {call.address, call.bytes, call.handle});
}

void on_unmap(const CallbackData& data) noexcept {
  const auto& unmap = parameters<UnmapParameters>(data);
  record_driver_call(DriverCall::unmap, -1, {unmap.address, unmap.bytes}, call_ticks(data));
}

/// `may_be_unknown`: some memory that such calls release was taken by unrecorded calls.
void on_free(const CallbackData& data, std::uint64_t address, bool may_be_unknown) noexcept {
  record_driver_call(DriverCall::free, -1, {address, may_be_unknown ? 1U : 0U}, call_ticks(data));
}

}  // namespace

std::span<const std::uint32_t> watched_calls() noexcept {
  return kWatched;
}

void on_driver_call(void* /*user_data*/, std::uint32_t domain, std::uint32_t id, const CallbackData* data) {
  if (domain != kDriverApiDomain) return;
  const int saved = errno;
  if (data->site == Site::enter) {
    on_enter(id, *data);
  } else {
    on_exit(id, *data, native_caller_context());
  }
  errno = saved;
}

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

Device device_at(const Location& location) noexcept {
  return location.type == kLocationDevice ? location.id : -1;
}

std::uint64_t on_taken(std::uint32_t id, const CallbackData& data, const NativeContext& caller) noexcept {
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
    case id::ArrayCreate_v2:
    case id::Array3DCreate_v2:
    case id::MipmappedArrayCreate:
      return on_array_creation(id, data, caller);
    case id::MemCreate:
      return on_create(data, caller);
    default:
      return 0;
  }
}

void on_given_back(std::uint32_t id, const CallbackData& data) noexcept {
  switch (id) {
    case id::MemFree_v2:
      if (const DevicePointer address = parameters<FreeParameters>(data).address; address != 0)
        on_free(data, address, pools_are_used());
      return;
    case id::MemFreeAsync:
    case id::MemFreeAsync_ptsz:  // also frees memory of cuMemAlloc
      return on_free(data, parameters<FreeParameters>(data).address, true);
    case id::MemFreeHost:
    case id::MemHostUnregister:
      return on_free(data, number(parameters<FreeHostParameters>(data).address), false);
    case id::ArrayDestroy:
    case id::MipmappedArrayDestroy:
      return on_free(data, number(parameters<ArrayParameters>(data).array), true);
    case id::MemRelease:
      return record_driver_call(DriverCall::release, -1, {parameters<ReleaseParameters>(data).handle},
                                call_ticks(data));
    case id::MemUnmap:
      return on_unmap(data);
    case id::MemPoolDestroy:
      return pool_destroyed(parameters<PoolParameters>(data).pool, call_ticks(data));
    case id::DevicePrimaryCtxReset_v2:
      return record_driver_call(DriverCall::reset_device, parameters<DeviceParameters>(data).device, {},
                                call_ticks(data));
    default:
      return;
  }
}

void on_physical(std::uint32_t id, const CallbackData& data) noexcept {
  switch (id) {
    case id::MemMap:
      return on_map(data);
    case id::MemImportFromShareableHandle:
    case id::MemRetainAllocationHandle:
    case id::MulticastCreate:
      return record_driver_call(DriverCall::adopt, -1, {*parameters<AdoptParameters>(data).handle});
    default:
      return;
  }
}

}  // namespace tidemark::process::cuda
