#include "collect/process/driver/memory_calls.h"

#include <array>
#include <atomic>

#include "collect/process/driver/array_size.h"
#include "collect/process/driver/driver_record.h"
#include "collect/process/driver/pools.h"

namespace tidemark::process::cuda {
namespace {

using ring::DriverCall;

std::uint64_t number(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);
}

// By the context's number, from 1 on: the device + 1; 0 = not asked yet.
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
  record_driver_call(DriverCall::unmap, -1, {unmap.address, unmap.bytes}, made(data));
}

/// `may_be_unknown`: not everything that such calls give back is recorded.
void on_free(const CallbackData& data, std::uint64_t address, bool may_be_unknown) noexcept {
  record_driver_call(DriverCall::free, -1, {address, may_be_unknown ? 1U : 0U}, made(data));
}

}  // namespace

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
    case id::MemFreeAsync_ptsz:  // takes what cuMemAlloc gave too
      return on_free(data, parameters<FreeParameters>(data).address, true);
    case id::MemFreeHost:
    case id::MemHostUnregister:
      return on_free(data, number(parameters<FreeHostParameters>(data).address), false);
    case id::ArrayDestroy:
    case id::MipmappedArrayDestroy:
      return on_free(data, number(parameters<ArrayParameters>(data).array), true);
    case id::MemRelease:
      return record_driver_call(DriverCall::release, -1, {parameters<ReleaseParameters>(data).handle}, made(data));
    case id::MemUnmap:
      return on_unmap(data);
    case id::MemPoolDestroy:
      return pool_destroyed(parameters<PoolParameters>(data).pool, made(data));
    case id::DevicePrimaryCtxReset_v2:
      return record_driver_call(DriverCall::reset_device, parameters<DeviceParameters>(data).device, {}, made(data));
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
