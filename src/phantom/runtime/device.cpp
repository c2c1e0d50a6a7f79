// Devices, their properties and attributes, versions and errors.
#include <algorithm>
#include <cstdio>

#include "phantom/gpu/attributes.h"
#include "phantom/gpu/profile.h"
#include "phantom/gpu/visible_devices.h"
#include "phantom/runtime/device_properties.h"

namespace tidemark::phantom {
namespace {

thread_local int last_error = kSuccess;

}  // namespace

int report(int status) {
  if (status != kSuccess) last_error = status;
  return status;
}

TIDEMARK_PHANTOM_API int cuCtxGetLimit(std::size_t* value, int limit);
TIDEMARK_PHANTOM_API int cuCtxSetLimit(int limit, std::size_t value);

// The first call of most programs, with which the runtime initializes the driver.
TIDEMARK_PHANTOM_API int cudaGetDeviceCount(int* count) {
  load_injected_tool();
  *count = static_cast<int>(visible_devices().size());
  return *count != 0 ? kSuccess : report(kNoDevice);
}

TIDEMARK_PHANTOM_API int cudaGetDevice(int* device) {
  *device = current_device();
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaSetDevice(int device) {
  if (!is_device(device)) return report(kInvalidDevice);
  set_current_device(device);
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaDeviceGetAttribute(int* value, int attribute, int device) {
  if (!is_device(device)) return report(kInvalidDevice);
  *value = device_attribute(attribute, device);
  return kSuccess;
}

// CUDA 13 has this name, CUDA 12 the one with _v2; each has its own layout.
TIDEMARK_PHANTOM_API int cudaGetDeviceProperties(DeviceProperties13* properties, int device) {
  if (!is_device(device)) return report(kInvalidDevice);
  *properties = device_properties<DeviceProperties13>(device);
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaGetDeviceProperties_v2(DeviceProperties12* properties, int device) {
  if (!is_device(device)) return report(kInvalidDevice);
  *properties = device_properties<DeviceProperties12>(device);
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (!is_device(device)) return report(kInvalidDevice);
  write_pci_bus_id(text, length, physical_device(device));
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaDeviceGetByPCIBusId(int* device, const char* text) {
  unsigned bus = 0;
  if (std::sscanf(text, "%*x:%x", &bus) != 1) return report(kInvalidValue);
  for (*device = 0; is_device(*device); ++*device)
    if (physical_device(*device) + 1 == static_cast<int>(bus)) return kSuccess;
  return report(kInvalidDevice);
}

TIDEMARK_PHANTOM_API int cudaDriverGetVersion(int* version) {
  *version = profile().cuda_version;
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaRuntimeGetVersion(int* version) {
  *version = profile().cuda_version;
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaGetLastError() {
  const int error = last_error;
  last_error = kSuccess;
  return error;
}

TIDEMARK_PHANTOM_API int cudaPeekAtLastError() {
  return last_error;
}

TIDEMARK_PHANTOM_API const char* cudaGetErrorName(int status) {
  return status_name(status);
}
TIDEMARK_PHANTOM_API const char* cudaGetErrorString(int status) {
  return status_text(status);
}

TIDEMARK_PHANTOM_API int cudaDeviceSynchronize() {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaDeviceReset() {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaSetDeviceFlags(unsigned) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaGetDeviceFlags(unsigned* flags) {
  *flags = 0;
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaDeviceSetLimit(int limit, std::size_t value) {
  return report(cuCtxSetLimit(limit, value));
}
TIDEMARK_PHANTOM_API int cudaDeviceGetLimit(std::size_t* value, int limit) {
  return report(cuCtxGetLimit(value, limit));
}
TIDEMARK_PHANTOM_API int cudaProfilerStart() {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaProfilerStop() {
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (!is_device(device) || !is_device(peer)) return report(kInvalidDevice);
  *can = device != peer ? 1 : 0;
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaDeviceEnablePeerAccess(int peer, unsigned) {
  return is_device(peer) ? kSuccess : report(kInvalidDevice);
}

TIDEMARK_PHANTOM_API int cudaDeviceDisablePeerAccess(int peer) {
  return is_device(peer) ? kSuccess : report(kInvalidDevice);
}

TIDEMARK_PHANTOM_API int cudaDeviceGetP2PAttribute(int* value, int, int, int) {
  *value = 1;
  return kSuccess;
}

}  // namespace tidemark::phantom
