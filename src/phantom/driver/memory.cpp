// The driver's memory: allocations, the virtual memory of expandable segments, pointers and copies.
#include "phantom/gpu/memory.h"

#include <vector>

#include "phantom/gpu/device_memory.h"
#include "phantom/gpu/pools.h"
#include "phantom/gpu/profile.h"
#include "phantom/gpu/visible_devices.h"

namespace tidemark::phantom {
namespace {

// CUmemAllocationHandleType
constexpr int kFileDescriptor = 1;
constexpr int kFabric = 8;

void* address(DevicePointer pointer) {
  return reinterpret_cast<void*>(pointer);
}

}  // namespace

TIDEMARK_PHANTOM_API int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  const int device = physical_device(current_device());
  if (!make_context(device)) return kOutOfMemory;
  *total = profile().memory;
  *free = *total - memory_used(device);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuMemAlloc_v2(DevicePointer* pointer, std::size_t bytes) {
  if (bytes == 0) return kInvalidValue;
  *pointer = reinterpret_cast<DevicePointer>(allocate_device(current_device(), bytes, TIDEMARK_PHANTOM_CALLER));
  return *pointer != 0 ? kSuccess : kOutOfMemory;
}
TIDEMARK_PHANTOM_API int cuMemFree_v2(DevicePointer pointer) {
  return pointer == 0 || free_device(address(pointer)) ? kSuccess : kInvalidValue;
}
TIDEMARK_PHANTOM_API int cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  *pointer = allocate_pinned(bytes);
  return *pointer != nullptr ? kSuccess : kOutOfMemory;
}
TIDEMARK_PHANTOM_API int cuMemAllocHost_v2(void** pointer, std::size_t bytes) {
  return cuMemHostAlloc(pointer, bytes, 0);
}
TIDEMARK_PHANTOM_API int cuMemFreeHost(void* pointer) {
  return free_pinned(pointer) ? kSuccess : kInvalidValue;
}

TIDEMARK_PHANTOM_API int cuMemGetAllocationGranularity(std::size_t* bytes, const AllocationProperties*, int) {
  *bytes = kGranularity;
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuMemCreate(std::uint64_t* handle, std::size_t bytes, const AllocationProperties* properties,
                                     unsigned long long) {
  if ((properties->handle_types & kFabric) != 0) return kNotSupported;  // as without NVIDIA's IMEX service
  *handle = create_physical(properties->location.id, bytes, TIDEMARK_PHANTOM_CALLER);
  return *handle != 0 ? kSuccess : kOutOfMemory;
}
TIDEMARK_PHANTOM_API int cuMemRelease(std::uint64_t handle) {
  return release_physical(handle) ? kSuccess : kInvalidValue;
}
TIDEMARK_PHANTOM_API int cuMemExportToShareableHandle(void* shareable, std::uint64_t handle, int type,
                                                      unsigned long long) {
  if (type != kFileDescriptor) return kNotSupported;
  const int descriptor = share_physical(handle);
  if (descriptor < 0) return kInvalidValue;
  *static_cast<int*>(shareable) = descriptor;
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuMemImportFromShareableHandle(std::uint64_t* handle, void* shareable, int type) {
  if (type != kFileDescriptor) return kNotSupported;
  *handle = open_physical(static_cast<int>(reinterpret_cast<std::intptr_t>(shareable)));
  return *handle != 0 ? kSuccess : kInvalidValue;
}
TIDEMARK_PHANTOM_API int cuMemAddressReserve(DevicePointer* pointer, std::size_t bytes, std::size_t alignment,
                                             DevicePointer, unsigned long long) {
  *pointer = reinterpret_cast<DevicePointer>(reserve_addresses(bytes, alignment));
  return *pointer != 0 ? kSuccess : kOutOfMemory;
}
TIDEMARK_PHANTOM_API int cuMemAddressFree(DevicePointer pointer, std::size_t bytes) {
  free_addresses(address(pointer), bytes);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuMemMap(DevicePointer pointer, std::size_t bytes, std::size_t, std::uint64_t,
                                  unsigned long long) {
  map_addresses(address(pointer), bytes, current_device());
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuMemUnmap(DevicePointer, std::size_t) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuMemSetAccess(DevicePointer, std::size_t, const void*, std::size_t) {
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cuDeviceGetDefaultMemPool(Handle* pool, int device) {
  if (!is_device(device)) return kInvalidDevice;
  *pool = default_pool(device);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuDeviceGetMemPool(Handle* pool, int device) {
  return cuDeviceGetDefaultMemPool(pool, device);
}
TIDEMARK_PHANTOM_API int cuMemPoolGetAttribute(Handle pool, int attribute, void* value) {
  return get_pool_attribute(pool, attribute, value) ? kSuccess : kInvalidValue;
}
TIDEMARK_PHANTOM_API int cuMemPoolSetAttribute(Handle pool, int attribute, void* value) {
  return set_pool_attribute(pool, attribute, value) ? kSuccess : kInvalidValue;
}
TIDEMARK_PHANTOM_API int cuDeviceGetGraphMemAttribute(int, int, void* value) {
  *static_cast<std::uint64_t*>(value) = 0;
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cuMemGetAddressRange_v2(DevicePointer* start, std::size_t* bytes, DevicePointer pointer) {
  const auto allocation = find_allocation(address(pointer));
  if (!allocation) return kInvalidValue;
  if (start != nullptr) *start = reinterpret_cast<DevicePointer>(allocation->start);
  if (bytes != nullptr) *bytes = allocation->bytes;
  return kSuccess;
}
// CUpointer_attribute
TIDEMARK_PHANTOM_API int cuPointerGetAttribute(void* data, int attribute, DevicePointer pointer) {
  const auto allocation = find_allocation(address(pointer));
  if (!allocation && !is_pinned(address(pointer))) return kInvalidValue;
  switch (attribute) {
    case 2:
      *static_cast<int*>(data) = allocation ? 2 : 1;
      return kSuccess;  // MEMORY_TYPE
    case 3:             // DEVICE_POINTER
    case 4:             // HOST_POINTER
      *static_cast<DevicePointer*>(data) = pointer;
      return kSuccess;
    case 6:
      return kSuccess;  // SYNC_MEMOPS
    case 7:             // BUFFER_ID: of the whole allocation
      *static_cast<std::uint64_t*>(data) = allocation ? reinterpret_cast<std::uint64_t>(allocation->start) : pointer;
      return kSuccess;
    case 8:
      *static_cast<int*>(data) = 0;
      return kSuccess;  // IS_MANAGED
    case 9:
      *static_cast<int*>(data) = allocation ? allocation->device : current_device();
      return kSuccess;
    default:
      return kNotSupported;
  }
}

// Like the driver, it leaves outputs without a value unchanged.
TIDEMARK_PHANTOM_API int cuPointerGetAttributes(unsigned count, const int* attributes, void** data,
                                                DevicePointer pointer) {
  for (unsigned index = 0; index < count; ++index) cuPointerGetAttribute(data[index], attributes[index], pointer);
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cuMemcpyHtoD_v2(DevicePointer to, const void* from, std::size_t bytes) {
  copy(address(to), from, bytes);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuMemcpyDtoH_v2(void* to, DevicePointer from, std::size_t bytes) {
  copy(to, address(from), bytes);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, std::size_t bytes, Handle) {
  return cuMemcpyHtoD_v2(to, from, bytes);
}
TIDEMARK_PHANTOM_API int cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, std::size_t bytes, Handle) {
  return cuMemcpyDtoH_v2(to, from, bytes);
}
TIDEMARK_PHANTOM_API int cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, std::size_t bytes, Handle) {
  copy(address(to), address(from), bytes);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuMemsetD8Async(DevicePointer to, unsigned char value, std::size_t count, Handle) {
  fill(address(to), value, count);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuMemsetD32Async(DevicePointer to, unsigned value, std::size_t count, Handle) {
  if (count * 4 > kKeptCopyBytes) {
    fill(address(to), 0, count * 4);
    return kSuccess;
  }
  const std::vector<unsigned> values(count, value);
  copy(address(to), values.data(), count * 4);
  return kSuccess;
}

}  // namespace tidemark::phantom
