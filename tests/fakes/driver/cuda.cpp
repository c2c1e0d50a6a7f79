// A library that replaces the CUDA driver's libcuda.so.1: it manages memory like the driver, without having any, and
// keeps exact accounts (books.h). Like the real one, its first cuInit() loads the library in CUDA_INJECTION64_PATH, and
// it calls CUPTI for each call. script.h sets the number of devices and the failing calls.
#include "call.h"

namespace {

using namespace fakes;
using namespace tidemark::process::cuda;

Result allocate_host(const AllocateHostParameters& call) {
  std::uint64_t address = 0;
  const Result result = state->memory.allocate(kHostAccount, call.bytes, &address);
  if (result == kSuccess) *call.address = reinterpret_cast<void*>(address);
  return result;
}

Result synchronize() {
  state->memory.synchronized(context->device);
  return kSuccess;
}

// NAME_params of functions for which cupti_api.h has only the beginning.
struct ManagedParameters {
  AllocateParameters common;
  unsigned flags;
};
struct HostAllocParameters {
  AllocateHostParameters common;
  unsigned flags;
};
struct None {};
struct StreamParameters {
  Stream stream;
};

}  // namespace

// ---- contexts, waiting ----

FAKE Result cuDevicePrimaryCtxRetain(Context* out, Device device) {
  if (!usable()) return kNotInitialized;
  if (!known(device)) return kInvalidDevice;
  *out = &state->contexts[static_cast<std::size_t>(device)];
  return kSuccess;
}
FAKE Result cuDevicePrimaryCtxReset_v2(Device device) {
  if (!known(device)) return kInvalidDevice;
  return call(id::DevicePrimaryCtxReset_v2, HERE, DeviceParameters{device}, [](const DeviceParameters& call) {
    state->memory.reset(call.device);
    return kSuccess;
  });
}
FAKE Result cuCtxSetCurrent(Context wanted) {
  if (!usable()) return kNotInitialized;
  context = static_cast<FakeContext*>(wanted);
  return kSuccess;
}
FAKE Result cuCtxGetDevice(Device* device) {
  if (!usable()) return kNotInitialized;
  if (context == nullptr) return kInvalidContext;
  *device = context->device;
  return kSuccess;
}
FAKE Result cuCtxSynchronize() {
  return call(id::CtxSynchronize, HERE, None{}, [](None) { return synchronize(); });
}
FAKE Result cuStreamSynchronize(Stream stream) {
  return call(id::StreamSynchronize, HERE, StreamParameters{stream}, [](auto&) { return synchronize(); });
}
FAKE Result cuStreamSynchronize_ptsz(Stream stream) {
  return call(id::StreamSynchronize_ptsz, HERE, StreamParameters{stream}, [](auto&) { return synchronize(); });
}
FAKE Result cuEventSynchronize(fakes::Event event) {
  return call(id::EventSynchronize, HERE, StreamParameters{event}, [](auto&) { return synchronize(); });
}

// ---- blocks of a device, managed and page-locked memory ----

FAKE Result cuMemAlloc_v2(DevicePointer* address, std::size_t bytes) {
  return call(id::MemAlloc_v2, HERE, AllocateParameters{address, bytes}, [](const AllocateParameters& call) {
    return state->memory.allocate(device_account(context->device), call.bytes, call.address);
  });
}
FAKE Result cuMemAllocPitch_v2(DevicePointer* address, std::size_t* pitch, std::size_t width, std::size_t height,
                               unsigned element) {
  const AllocatePitchParameters parameters{address, pitch, width, height, element};
  return call(id::MemAllocPitch_v2, HERE, parameters, [](const AllocatePitchParameters& call) {
    *call.pitch = (call.width_bytes + 511) / 512 * 512;
    return state->memory.allocate(device_account(context->device), *call.pitch * call.height, call.address);
  });
}
FAKE Result cuMemAllocManaged(DevicePointer* address, std::size_t bytes, unsigned flags) {
  return call(id::MemAllocManaged, HERE, ManagedParameters{{address, bytes}, flags}, [](const ManagedParameters& call) {
    return state->memory.allocate(managed_account(context->device), call.common.bytes, call.common.address);
  });
}
FAKE Result cuMemFree_v2(DevicePointer address) {
  return call(id::MemFree_v2, HERE, FreeParameters{address},
              [](const FreeParameters& call) { return state->memory.free(call.address); });
}
FAKE Result cuMemAllocHost_v2(void** address, std::size_t bytes) {
  return call(id::MemAllocHost_v2, HERE, AllocateHostParameters{address, bytes}, allocate_host);
}
FAKE Result cuMemHostAlloc(void** address, std::size_t bytes, unsigned flags) {
  return call(id::MemHostAlloc, HERE, HostAllocParameters{{address, bytes}, flags},
              [](const HostAllocParameters& call) { return allocate_host(call.common); });
}
FAKE Result cuMemFreeHost(void* address) {
  return call(id::MemFreeHost, HERE, FreeHostParameters{address},
              [](const FreeHostParameters& call) { return state->memory.free(number(call.address)); });
}
FAKE Result cuMemHostRegister_v2(void* address, std::size_t bytes, unsigned flags) {
  return call(
      id::MemHostRegister_v2, HERE, RegisterHostParameters{address, bytes, flags},
      [](const RegisterHostParameters& call) { return state->memory.register_host(number(call.address), call.bytes); });
}
FAKE Result cuMemHostUnregister(void* address) {
  return call(id::MemHostUnregister, HERE, FreeHostParameters{address},
              [](const FreeHostParameters& call) { return state->memory.free(number(call.address)); });
}
