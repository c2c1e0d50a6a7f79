#include "phantom/gpu/attributes.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/profile.h"
#include "phantom/gpu/visible_devices.h"

namespace tidemark::phantom {

// NOLINTBEGIN(bugprone-branch-clone): in the order of the attributes
int device_attribute(int attribute, int device) {
  const Profile& gpu = profile();
  switch (attribute) {
    case 1:  // cudaDevAttrMaxThreadsPerBlock
    case 2:  // MaxBlockDimX
    case 3:
      return 1024;
    case 4:
      return 64;  // MaxBlockDimZ
    case 5:
      return 2147483647;  // MaxGridDimX
    case 6:
    case 7:
      return 65535;  // MaxGridDimY, Z
    case 8:
      return gpu.shared_per_block;
    case 9:
      return 65536;  // TotalConstantMemory
    case 10:
      return 32;  // WarpSize
    case 11:
      return 2147483647;  // MaxPitch
    case 12:
      return 65536;  // MaxRegistersPerBlock
    case 13:
      return gpu.clock_khz;
    case 14:
      return 512;  // TextureAlignment
    case kMultiprocessors:
      return gpu.multiprocessors;
    case 19:
      return 1;  // CanMapHostMemory
    case 31:
      return 1;  // ConcurrentKernels
    case 33:
      return physical_device(device) + 1;  // PciBusId
    case 36:
      return gpu.memory_clock_khz;
    case kMemoryBusBits:
      return gpu.memory_bus_bits;
    case kL2CacheBytes:
      return gpu.l2_cache;
    case kThreadsPerMultiprocessor:
      return gpu.threads_per_multiprocessor;
    case 40:
      return 3;  // AsyncEngineCount
    case 41:
      return 1;  // UnifiedAddressing
    case kCapabilityMajor:
      return gpu.major;
    case kCapabilityMinor:
      return gpu.minor;
    case 78:  // StreamPrioritiesSupported
    case 79:  // GlobalL1CacheSupported
    case 80:
      return 1;
    case kSharedBytesPerMultiprocessor:
      return gpu.shared_per_multiprocessor;
    case 82:
      return gpu.registers_per_multiprocessor;
    case 83:
      return 1;  // ManagedMemory
    case 89:
      return 1;  // ConcurrentManagedAccess
    case 90:
      return 1;  // ComputePreemptionSupported
    case 91:
      return 1;  // CanUseHostPointerForRegisteredMem
    case 95:
      return 1;  // CooperativeLaunch
    case kSharedBytesPerBlockOptin:
      return gpu.shared_per_block_optin;
    case 102:  // CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
    case 103:
      return 1;  // HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
    case kBlocksPerMultiprocessor:
      return gpu.blocks_per_multiprocessor;
    case 108:
      return gpu.l2_cache / 2;  // MaxPersistingL2CacheSize
    case 111:
      return 1024;  // ReservedSharedMemoryPerBlock
    case 115:
      return 1;  // MemoryPoolsSupported
    case 120:
      return gpu.major >= 9 ? 1 : 0;  // ClusterLaunch
    default:
      return 0;
  }
}

// NOLINTEND(bugprone-branch-clone)

namespace {

struct Text {
  int status;
  const char* name;
  const char* text;
};

constexpr Text kTexts[] = {
    {kSuccess, "cudaSuccess", "no error"},
    {kInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {kOutOfMemory, "cudaErrorMemoryAllocation", "out of memory"},
    {kNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {kInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {kInvalidHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {kNotFound, "cudaErrorSymbolNotFound", "named symbol not found"},
    {kNotReady, "cudaErrorNotReady", "device not ready"},
    {kPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {kPeerAccessNotEnabled, "cudaErrorPeerAccessNotEnabled", "peer access has not been enabled"},
    {kNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {kStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
};

const Text* find(int status) {
  for (const Text& text : kTexts)
    if (text.status == status) return &text;
  return nullptr;
}

}  // namespace

void write_uuid(char* uuid, int device) {
  constexpr char kUuid[] = "tidemark-phantom";
  std::copy_n(kUuid, 15, uuid);
  uuid[15] = static_cast<char>(device);
}

void write_pci_bus_id(char* text, int length, int device) {
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02X:00.0", device + 1);
}

const char* status_name(int status) {
  const Text* const text = find(status);
  return text != nullptr ? text->name : "cudaErrorUnknown";
}

const char* status_text(int status) {
  const Text* const text = find(status);
  return text != nullptr ? text->text : "unknown error of the phantom GPU";
}

}  // namespace tidemark::phantom
