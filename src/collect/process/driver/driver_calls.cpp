#include "collect/process/driver/driver_calls.h"

#include <errno.h>

#include <array>

#include "collect/process/driver/driver_record.h"
#include "collect/process/driver/memory_calls.h"
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

// While a call takes or gives memory of a device, what is used changes at a moment that nobody knows. Taking 60 GiB
// takes 0.1 s.
constexpr std::uint64_t kSlowTicks = 1'000'000;  // 1 ms, or less where ticks are shorter than a nanosecond

/// What is to be known of a call besides that it succeeded.
struct Timing {
  bool gives_back;  ///< it counts from when it was made: ring/layout.h says why
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

/// `returned`: the ticks of the call's record, 0 where it has none.
void record_if_slow(const CallbackData& data, std::uint64_t returned) noexcept {
  if (returned == 0) returned = ticks(session.clock);
  if (made(data) != 0 && returned - made(data) >= kSlowTicks)
    record_driver_call(ring::DriverCall::slow, -1, {made(data)});
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
    case id::MemFree_v2:  // of what a pool gave: the pool shrinks at once
      pool_memory_freed();
      return pools_may_have_shrunk(caller);
    case id::CtxSynchronize:
    case id::EventSynchronize:
    case id::StreamSynchronize:
    case id::StreamSynchronize_ptsz:
      return pools_may_have_shrunk(caller);
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
  if (id == id::MemPoolDestroy) pool_going(parameters<PoolParameters>(data).pool);
  const Timing timing = timing_of(id);
  if (timing.gives_back || timing.how_long) made(data) = ticks(session.clock);
  if (timing.gives_back) set_driver_call_since(made(data));
}

void on_exit(std::uint32_t id, const CallbackData& data, const NativeContext& caller) noexcept {
  const bool succeeded = *static_cast<const Result*>(data.return_value) == kSuccess;
  const Timing timing = timing_of(id);
  std::uint64_t returned = 0;
  if (timing.gives_back) {
    if (succeeded) on_given_back(id, data);
    if (!succeeded && id == id::MemPoolDestroy) pool_stays(parameters<PoolParameters>(data).pool);
    set_driver_call_since(0);
  } else if (succeeded) {
    returned = on_taken(id, data, caller);
    on_physical(id, data);
  }
  if (succeeded) on_pools(id, data, caller);
  if (timing.how_long) record_if_slow(data, returned);
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

}  // namespace tidemark::process::cuda
