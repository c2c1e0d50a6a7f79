// The driver: devices, contexts, versions, errors, and the lookup of its functions.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <iterator>
#include <string>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/address_space.h"
#include "phantom/gpu/attributes.h"
#include "phantom/gpu/device_memory.h"
#include "phantom/gpu/profile.h"
#include "phantom/gpu/usage.h"
#include "phantom/gpu/visible_devices.h"

namespace tidemark::phantom {
namespace {

// A context is the address of its device's entry; the runtime and the driver share the primary ones.
char contexts[kMaximumDevices];

std::atomic<std::size_t> limits[] = {1024, 1 << 20, 8 << 20};  // of a thread's stack, of printf's buffer, of the heap

Handle context_of(int device) {
  return &contexts[device];
}
int device_of(Handle context) {
  return static_cast<int>(static_cast<char*>(context) - contexts);
}

// The function of this library under its newest name: a program looks up cuMemGetInfo and means cuMemGetInfo_v2.
// Missing functions are looked up in the stand-in of the driver, whose functions fail and print their names when they
// are called.
void* find_function(const char* name) {
  static void* const kLibrary = [] {
    Dl_info self{};
    dladdr(reinterpret_cast<void*>(&find_function), &self);
    return dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }();
  void* const newest = dlsym(kLibrary, (std::string(name) + "_v2").c_str());
  void* const found = newest != nullptr ? newest : dlsym(kLibrary, name);
  return found != nullptr ? found : dlsym(RTLD_DEFAULT, name);
}

// A CUDA runtime other than the stand-in for PyTorch's looks up every function of the driver when it starts, the first
// one without a name; none of its calls would succeed.
int find_entry(const char* name, void** function, int* found, const void* caller) {
  if (*name == '\0') note_own_runtime(caller);
  const bool own_runtime = has_own_runtime(caller);
  *function = own_runtime ? nullptr : find_function(name);
  if (found != nullptr) *found = *function != nullptr ? 0 : 1;
  if (*function == nullptr && !own_runtime) count_unanswered(name);
  return *function != nullptr ? kSuccess : kNotFound;
}

}  // namespace

TIDEMARK_PHANTOM_API int cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                                          unsigned long long, int* found) {
  find_entry(name, function, found, TIDEMARK_PHANTOM_CALLER);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long, int* found) {
  find_entry(name, function, found, TIDEMARK_PHANTOM_CALLER);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuGetProcAddress(const char* name, void** function, int, std::uint64_t) {
  return find_entry(name, function, nullptr, TIDEMARK_PHANTOM_CALLER);
}
TIDEMARK_PHANTOM_API int cuGetProcAddress_v2(const char* name, void** function, int, std::uint64_t, int* found) {
  return find_entry(name, function, found, TIDEMARK_PHANTOM_CALLER);
}
// Tables of functions without names, which a CUDA runtime uses to talk to its driver.
TIDEMARK_PHANTOM_API int cuGetExportTable(const void** table, const void*) {
  note_own_runtime(TIDEMARK_PHANTOM_CALLER);
  *table = nullptr;
  return kNotFound;
}

TIDEMARK_PHANTOM_API int cuInit(unsigned) {
  load_injected_tool();
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuDriverGetVersion(int* version) {
  *version = profile().cuda_version;
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuGetErrorName(int status, const char** text) {
  *text = status_name(status);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuGetErrorString(int status, const char** text) {
  *text = status_text(status);
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(visible_devices().size());
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return is_device(ordinal) ? kSuccess : kInvalidDevice;
}
TIDEMARK_PHANTOM_API int cuDeviceGetName(char* name, int length, int) {
  std::snprintf(name, static_cast<std::size_t>(length), "%s", profile().name.c_str());
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = profile().memory;
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuDeviceGetAttribute(int* value, int attribute, int device) {
  *value = device_attribute(attribute, device);
  return is_device(device) ? kSuccess : kInvalidDevice;
}
TIDEMARK_PHANTOM_API int cuDeviceComputeCapability(int* major, int* minor, int) {
  *major = profile().major;
  *minor = profile().minor;
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuDeviceGetUuid(char* uuid, int device) {
  write_uuid(uuid, physical_device(device));
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuDeviceGetUuid_v2(char* uuid, int device) {
  return cuDeviceGetUuid(uuid, device);
}
TIDEMARK_PHANTOM_API int cuDeviceGetPCIBusId(char* text, int length, int device) {
  write_pci_bus_id(text, length, physical_device(device));
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cuDevicePrimaryCtxRetain(Handle* context, int device) {
  if (!is_device(device)) return kInvalidDevice;
  if (!make_context(physical_device(device))) return kOutOfMemory;
  *context = context_of(device);
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuDevicePrimaryCtxRelease_v2(int) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuDevicePrimaryCtxSetFlags_v2(int, unsigned) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  *flags = 0;
  *active = has_context(physical_device(device)) ? 1 : 0;
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuCtxGetCurrent(Handle* context) {
  *context = context_of(current_device());
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuCtxSetCurrent(Handle context) {
  if (context != nullptr) set_current_device(device_of(context));
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuCtxPushCurrent_v2(Handle context) {
  return cuCtxSetCurrent(context);
}
TIDEMARK_PHANTOM_API int cuCtxPopCurrent_v2(Handle* context) {
  if (context != nullptr) *context = context_of(current_device());
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuCtxGetDevice(int* device) {
  *device = current_device();
  return kSuccess;
}
// CUlimit. The initial values are those of the CUDA Programming Guide.
TIDEMARK_PHANTOM_API int cuCtxGetLimit(std::size_t* value, int limit) {
  if (limit < 0 || limit >= static_cast<int>(std::size(limits))) return kNotSupported;
  *value = limits[limit].load();
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuCtxSetLimit(int limit, std::size_t value) {
  if (limit < 0 || limit >= static_cast<int>(std::size(limits))) return kNotSupported;
  limits[limit].store(value);
  return kSuccess;
}
// A driver without a device has nothing to log.
TIDEMARK_PHANTOM_API int cuLogsRegisterCallback(void*, void*, Handle* callback) {
  *callback = new_handle();
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuLogsUnregisterCallback(Handle) {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuCtxSynchronize() {
  return kSuccess;
}
TIDEMARK_PHANTOM_API int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return kSuccess;
}

}  // namespace tidemark::phantom
