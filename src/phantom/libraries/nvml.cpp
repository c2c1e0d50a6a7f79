// NVML: the devices, and the memory that the processes of the plan hold on them. Clocks, temperatures and utilization
// are not available.
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/attributes.h"
#include "phantom/gpu/device_memory.h"
#include "phantom/gpu/profile.h"
#include "phantom/gpu/visible_devices.h"

namespace tidemark::phantom {
namespace {

// nvmlReturn_t
enum NvmlResult : int {
  kNvmlSuccess = 0,
  kNvmlInvalidArgument = 2,
  kNvmlNotFound = 6,
  kNvmlInsufficientSize = 7,
};

// nvmlDevice_t is the number of the device, from 1.
Handle nvml_handle(int device) {
  return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(device) + 1);
}
int nvml_device(Handle handle) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(handle)) - 1;
}

int write_text(char* text, unsigned length, const std::string& value) {
  if (value.size() >= length) return kNvmlInsufficientSize;
  std::memcpy(text, value.c_str(), value.size() + 1);
  return kNvmlSuccess;
}

// NVML lists all devices, whatever CUDA_VISIBLE_DEVICES is.
bool exists(int device) {
  return device >= 0 && device < profile().devices;
}

int find(Handle* handle, std::optional<int> device) {
  if (!device || !exists(*device)) return kNvmlNotFound;
  *handle = nvml_handle(*device);
  return kNvmlSuccess;
}

struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct NvmlMemory2 {
  unsigned version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
struct NvmlProcess {
  unsigned process;
  unsigned long long used;
};
struct NvmlProcess3 {
  unsigned process;
  unsigned long long used;
  unsigned gpu_instance;
  unsigned compute_instance;
};
struct NvmlPci {
  char legacy_id[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  char id[32];
};

struct NvmlFabric {
  unsigned version;
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
  unsigned health;
};

template <typename Process>
int running_processes(Handle handle, unsigned* count, Process* processes) {
  const std::vector<ProcessMemory> found = memory_of_processes(nvml_device(handle));
  const std::size_t room = processes != nullptr ? *count : 0;
  *count = static_cast<unsigned>(found.size());
  if (room < found.size()) return kNvmlInsufficientSize;
  for (std::size_t index = 0; index < found.size(); ++index) {
    processes[index] = {};
    processes[index].process = static_cast<unsigned>(found[index].process);
    processes[index].used = found[index].bytes;
  }
  return kNvmlSuccess;
}

}  // namespace

TIDEMARK_PHANTOM_API int nvmlInit_v2() {
  return kNvmlSuccess;
}
TIDEMARK_PHANTOM_API int nvmlInit() {
  return kNvmlSuccess;
}
TIDEMARK_PHANTOM_API int nvmlInitWithFlags(unsigned) {
  return kNvmlSuccess;
}
TIDEMARK_PHANTOM_API int nvmlShutdown() {
  return kNvmlSuccess;
}
TIDEMARK_PHANTOM_API const char* nvmlErrorString(int result) {
  switch (result) {
    case kNvmlSuccess:
      return "Success";
    case kNvmlInvalidArgument:
      return "Invalid Argument";
    case 3:
      return "Not Supported";
    case kNvmlNotFound:
      return "Not Found";
    case kNvmlInsufficientSize:
      return "Insufficient Size";
    default:
      return "Unknown Error";
  }
}
TIDEMARK_PHANTOM_API int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  return write_text(text, length, "0.0 (phantom GPU)");
}
TIDEMARK_PHANTOM_API int nvmlSystemGetCudaDriverVersion(int* version) {
  *version = profile().cuda_version;
  return kNvmlSuccess;
}
TIDEMARK_PHANTOM_API int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return nvmlSystemGetCudaDriverVersion(version);
}

TIDEMARK_PHANTOM_API int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(profile().devices);
  return kNvmlSuccess;
}
TIDEMARK_PHANTOM_API int nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle* handle) {
  if (!exists(static_cast<int>(index))) return kNvmlInvalidArgument;
  *handle = nvml_handle(static_cast<int>(index));
  return kNvmlSuccess;
}
TIDEMARK_PHANTOM_API int nvmlDeviceGetHandleByUUID(const char* uuid, Handle* handle) {
  for (int device = 0; exists(device); ++device)
    if (device_uuid(device) == uuid) return find(handle, device);
  return kNvmlNotFound;
}
// "domain:bus:device.function", as written by cudaDeviceGetPCIBusId.
TIDEMARK_PHANTOM_API int nvmlDeviceGetHandleByPciBusId_v2(const char* id, Handle* handle) {
  std::string_view text = id;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return kNvmlInvalidArgument;
  text.remove_prefix(colon + 1);
  int bus = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bus, 16);
  return error == std::errc() ? find(handle, bus - 1) : static_cast<int>(kNvmlInvalidArgument);
}

TIDEMARK_PHANTOM_API int nvmlDeviceGetIndex(Handle handle, unsigned* index) {
  *index = static_cast<unsigned>(nvml_device(handle));
  return kNvmlSuccess;
}
TIDEMARK_PHANTOM_API int nvmlDeviceGetMinorNumber(Handle handle, unsigned* number) {
  return nvmlDeviceGetIndex(handle, number);
}
TIDEMARK_PHANTOM_API int nvmlDeviceGetName(Handle, char* text, unsigned length) {
  return write_text(text, length, profile().name);
}
TIDEMARK_PHANTOM_API int nvmlDeviceGetUUID(Handle handle, char* text, unsigned length) {
  return write_text(text, length, device_uuid(nvml_device(handle)));
}
TIDEMARK_PHANTOM_API int nvmlDeviceGetPciInfo_v3(Handle handle, NvmlPci* pci) {
  *pci = {};
  pci->bus = static_cast<unsigned>(nvml_device(handle)) + 1;
  std::snprintf(pci->legacy_id, sizeof pci->legacy_id, "0000:%02X:00.0", pci->bus & 0xffU);
  std::snprintf(pci->id, sizeof pci->id, "00000000:%02X:00.0", pci->bus & 0xffU);
  return kNvmlSuccess;
}
TIDEMARK_PHANTOM_API int nvmlDeviceGetCudaComputeCapability(Handle, int* major, int* minor) {
  *major = profile().major;
  *minor = profile().minor;
  return kNvmlSuccess;
}
TIDEMARK_PHANTOM_API int nvmlDeviceGetMemoryInfo(Handle handle, NvmlMemory* memory) {
  memory->total = profile().memory;
  memory->used = memory_used(nvml_device(handle));
  memory->free = memory->total - memory->used;
  return kNvmlSuccess;
}
TIDEMARK_PHANTOM_API int nvmlDeviceGetMemoryInfo_v2(Handle handle, NvmlMemory2* memory) {
  NvmlMemory first;
  nvmlDeviceGetMemoryInfo(handle, &first);
  *memory = {memory->version, first.total, 0, first.free, first.used};
  return kNvmlSuccess;
}
TIDEMARK_PHANTOM_API int nvmlDeviceGetComputeRunningProcesses(Handle handle, unsigned* count, NvmlProcess* processes) {
  return running_processes(handle, count, processes);
}
TIDEMARK_PHANTOM_API int nvmlDeviceGetComputeRunningProcesses_v2(Handle handle, unsigned* count,
                                                                 NvmlProcess3* processes) {
  return running_processes(handle, count, processes);
}
TIDEMARK_PHANTOM_API int nvmlDeviceGetComputeRunningProcesses_v3(Handle handle, unsigned* count,
                                                                 NvmlProcess3* processes) {
  return running_processes(handle, count, processes);
}
// No device is part of a multi-node fabric.
TIDEMARK_PHANTOM_API int nvmlDeviceGetGpuFabricInfoV(Handle, NvmlFabric* fabric) {
  *fabric = {fabric->version, {}, kNvmlSuccess, 0, 0 /* NVML_GPU_FABRIC_STATE_NOT_SUPPORTED */, 0};
  return kNvmlSuccess;
}
// Each device can access each other, as in cudaDeviceCanAccessPeer.
TIDEMARK_PHANTOM_API int nvmlDeviceGetP2PStatus(Handle, Handle, int, int* status) {
  *status = 0;  // NVML_P2P_STATUS_OK
  return kNvmlSuccess;
}

}  // namespace tidemark::phantom
