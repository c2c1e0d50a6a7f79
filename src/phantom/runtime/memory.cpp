// Device and host memory: cudaMalloc and its relatives, copies, pointers, pools.
#include "phantom/gpu/memory.h"

#include <cstdlib>
#include <cstring>

#include "phantom/gpu/attributes.h"
#include "phantom/gpu/device_memory.h"
#include "phantom/gpu/pools.h"
#include "phantom/gpu/profile.h"
#include "phantom/gpu/visible_devices.h"

namespace tidemark::phantom {

namespace {

int allocate(void** pointer, std::size_t bytes, const void* caller) {
  *pointer = bytes == 0 ? nullptr : allocate_device(current_device(), bytes, caller);
  return bytes == 0 || *pointer != nullptr ? kSuccess : report(kOutOfMemory);
}

int allocate_from(Handle pool, void** pointer, std::size_t bytes, const void* caller) {
  *pointer = allocate_from_pool(pool, bytes, caller);
  return *pointer != nullptr || bytes == 0 ? kSuccess : report(kOutOfMemory);
}

}  // namespace

TIDEMARK_PHANTOM_API int cudaMalloc(void** pointer, std::size_t bytes) {
  return allocate(pointer, bytes, TIDEMARK_PHANTOM_CALLER);
}

TIDEMARK_PHANTOM_API int cudaFree(void* pointer) {
  return pointer == nullptr || free_device(pointer) ? kSuccess : report(kInvalidValue);
}

TIDEMARK_PHANTOM_API int cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return allocate(pointer, *pitch * height, TIDEMARK_PHANTOM_CALLER);
}

// Managed memory is used from the host too, so it is real; it counts as device memory.
TIDEMARK_PHANTOM_API int cudaMallocManaged(void** pointer, std::size_t bytes, unsigned) {
  return allocate(pointer, bytes, TIDEMARK_PHANTOM_CALLER);
}

TIDEMARK_PHANTOM_API int cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const int device = physical_device(current_device());
  if (!make_context(device)) return report(kOutOfMemory);
  *total = profile().memory;
  *free = *total - memory_used(device);
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  *pointer = allocate_pinned(bytes);
  return *pointer != nullptr ? kSuccess : report(kOutOfMemory);
}

TIDEMARK_PHANTOM_API int cudaMallocHost(void** pointer, std::size_t bytes) {
  return cudaHostAlloc(pointer, bytes, 0);
}

TIDEMARK_PHANTOM_API int cudaFreeHost(void* pointer) {
  return pointer == nullptr || free_pinned(pointer) ? kSuccess : report(kInvalidValue);
}

TIDEMARK_PHANTOM_API int cudaHostRegister(void* pointer, std::size_t bytes, unsigned) {
  return register_pinned(pointer, bytes) ? kSuccess : report(712 /* cudaErrorHostMemoryAlreadyRegistered */);
}

TIDEMARK_PHANTOM_API int cudaHostUnregister(void* pointer) {
  return unregister_pinned(pointer) ? kSuccess : report(713 /* cudaErrorHostMemoryNotRegistered */);
}

TIDEMARK_PHANTOM_API int cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  *device = host;
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaHostGetFlags(unsigned* flags, void* pointer) {
  *flags = 0;
  return is_pinned(pointer) ? kSuccess : report(kInvalidValue);
}

TIDEMARK_PHANTOM_API int cudaPointerGetAttributes(PointerAttributes* attributes, const void* pointer) {
  // CUDA 12 has no reserved fields: the written part ends before them.
  std::memset(attributes, 0, offsetof(PointerAttributes, reserved));
  auto* const address = const_cast<void*>(pointer);
  if (const auto allocation = find_allocation(pointer)) {
    attributes->type = kMemoryDevice;
    attributes->device = allocation->device;
    attributes->device_pointer = address;
  } else if (is_pinned(pointer)) {
    attributes->type = kMemoryHost;
    attributes->device = current_device();
    attributes->device_pointer = attributes->host_pointer = address;
  } else {
    attributes->device = -2;  // CUDA's value for unknown memory
    attributes->host_pointer = address;
  }
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaMemcpy(void* to, const void* from, std::size_t bytes, int) {
  copy(to, from, bytes);
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int, Handle) {
  copy(to, from, bytes);
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaMemcpyPeer(void* to, int, const void* from, int, std::size_t bytes) {
  copy(to, from, bytes);
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes, Handle) {
  copy(to, from, bytes);
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                           std::size_t width, std::size_t height, int, Handle) {
  for (std::size_t row = 0; row < height; ++row)
    copy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaMemset(void* pointer, int value, std::size_t bytes) {
  fill(pointer, value, bytes);
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaMemsetAsync(void* pointer, int value, std::size_t bytes, Handle) {
  fill(pointer, value, bytes);
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaMemcpyToSymbol(const void*, const void*, std::size_t, std::size_t, int) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaMemcpyToSymbolAsync(const void*, const void*, std::size_t, std::size_t, int, Handle) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaMemPrefetchAsync(const void*, std::size_t, int, Handle) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaMemAdvise(const void*, std::size_t, int, int) {
  return kSuccess;
}

// A device symbol gets an address at the first call, which it keeps.
TIDEMARK_PHANTOM_API int cudaGetSymbolAddress(void** pointer, const void* symbol) {
  *pointer = symbol_address(symbol);
  return *pointer != nullptr ? kSuccess : report(kOutOfMemory);
}

TIDEMARK_PHANTOM_API int cudaDeviceGetDefaultMemPool(Handle* pool, int device) {
  *pool = default_pool(device);
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaDeviceGetMemPool(Handle* pool, int device) {
  *pool = default_pool(device);
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaMallocAsync(void** pointer, std::size_t bytes, Handle) {
  return allocate_from(default_pool(current_device()), pointer, bytes, TIDEMARK_PHANTOM_CALLER);
}

TIDEMARK_PHANTOM_API int cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, Handle pool, Handle) {
  return allocate_from(pool, pointer, bytes, TIDEMARK_PHANTOM_CALLER);
}

TIDEMARK_PHANTOM_API int cudaFreeAsync(void* pointer, Handle) {
  return pointer == nullptr || free_to_pool(pointer) || free_device(pointer) ? kSuccess : report(kInvalidValue);
}

TIDEMARK_PHANTOM_API int cudaMemPoolGetAttribute(Handle pool, int attribute, void* value) {
  return get_pool_attribute(pool, attribute, value) ? kSuccess : report(kInvalidValue);
}

TIDEMARK_PHANTOM_API int cudaMemPoolSetAttribute(Handle pool, int attribute, void* value) {
  return set_pool_attribute(pool, attribute, value) ? kSuccess : report(kInvalidValue);
}

TIDEMARK_PHANTOM_API int cudaMemPoolTrimTo(Handle pool, std::size_t bytes) {
  trim_pool(pool, bytes);
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaMemPoolSetAccess(Handle, const void*, std::size_t) {
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaDeviceGetGraphMemAttribute(int, int, void* value) {
  *static_cast<std::uint64_t*>(value) = 0;
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaDeviceSetGraphMemAttribute(int, int, void*) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaDeviceGraphMemTrim(int) {
  return kSuccess;
}

}  // namespace tidemark::phantom
