// Memory and events shared between processes (CUDA IPC). Opened memory belongs to its owner: it only takes addresses,
// and data written there stays in the process that wrote it.
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/attributes.h"
#include "phantom/gpu/device_memory.h"
#include "phantom/gpu/memory.h"
#include "phantom/gpu/visible_devices.h"

namespace tidemark::phantom {
namespace {

// cudaIpcMemHandle_t and cudaIpcEventHandle_t; their content is private.
struct IpcHandle {
  std::uint32_t magic;
  std::int32_t process;
  std::int32_t physical_device;
  std::uint64_t address;
  std::uint64_t bytes;
  char unused[32];
};
static_assert(sizeof(IpcHandle) == 64);
constexpr std::uint32_t kSharingMagic = 0x63706974;

}  // namespace

TIDEMARK_PHANTOM_API int cudaIpcGetMemHandle(IpcHandle* handle, void* pointer) {
  const auto allocation = find_allocation(pointer);
  if (!allocation) return report(kInvalidValue);
  *handle = {kSharingMagic,
             getpid(),
             physical_device(allocation->device),
             reinterpret_cast<std::uint64_t>(allocation->start),
             allocation->bytes,
             {}};
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaIpcOpenMemHandle(void** pointer, IpcHandle handle, unsigned) {
  const int device = current_device();
  // Not in the exporting process, nor on another device.
  if (handle.magic != kSharingMagic || handle.process == getpid()) return report(kInvalidValue);
  if (!is_device(device) || physical_device(device) != handle.physical_device) return report(kInvalidDevice);
  if (!make_context(handle.physical_device)) return report(kOutOfMemory);
  *pointer = reserve_addresses(handle.bytes, kGranularity);
  if (*pointer == nullptr) return report(kOutOfMemory);
  map_addresses(*pointer, handle.bytes, device);
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaIpcCloseMemHandle(void* pointer) {
  const auto allocation = find_allocation(pointer);
  if (!allocation || allocation->start != pointer) return report(kInvalidValue);
  free_addresses(pointer, allocation->bytes);
  return kSuccess;
}

// All work ends immediately, so an event of another process has happened.
TIDEMARK_PHANTOM_API int cudaIpcGetEventHandle(IpcHandle* handle, Handle) {
  *handle = {};
  return kSuccess;
}

TIDEMARK_PHANTOM_API int cudaIpcOpenEventHandle(Handle* event, IpcHandle) {
  *event = new_handle();
  return kSuccess;
}

}  // namespace tidemark::phantom
