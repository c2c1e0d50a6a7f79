// The parts of CUDA's binary interface that the phantom GPU implements, declared independently.
//
// Enumerations are plain integers and handles plain pointers, as in the calling convention. Numbers are from CUDA's
// documentation; tests compare them with NVIDIA's headers if these are installed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

/// Exports a function under its C name, as a program linked with NVIDIA's library looks it up.
#define TIDEMARK_PHANTOM_API extern "C" __attribute__((visibility("default")))

/// In an exported function: an address in the calling code.
#define TIDEMARK_PHANTOM_CALLER __builtin_return_address(0)

namespace tidemark::phantom {

using Handle = void*;                 ///< stream, event, graph, library handle: an opaque pointer
using DevicePointer = std::uint64_t;  ///< CUdeviceptr

struct Dim3 {
  std::uint32_t x;
  std::uint32_t y;
  std::uint32_t z;
};

/// cudaError and CUresult, which have these numbers in common.
enum Status : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kPeerAccessAlreadyEnabled = 704,
  kPeerAccessNotEnabled = 705,
  kNotSupported = 801,
  kStreamCaptureUnsupported = 900,
};

/// cudaDeviceAttr and CUdevice_attribute, which are equal: the properties that differ between kinds of GPU.
enum DeviceAttribute : int {
  kMultiprocessors = 16,
  kMemoryBusBits = 37,
  kL2CacheBytes = 38,
  kThreadsPerMultiprocessor = 39,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kSharedBytesPerMultiprocessor = 81,
  kSharedBytesPerBlockOptin = 97,
  kBlocksPerMultiprocessor = 106,
};

/// cudaMemoryType.
enum MemoryType : int { kMemoryUnregistered = 0, kMemoryHost = 1, kMemoryDevice = 2, kMemoryManaged = 3 };

/// cudaPointerAttributes.
struct PointerAttributes {
  int type;
  int device;
  void* device_pointer;
  void* host_pointer;
  long reserved[8];  // from CUDA 13 on; CUDA 12 ends before it
};

/// cudaFuncAttributes.
struct FunctionAttributes {
  std::size_t shared_bytes;
  std::size_t constant_bytes;
  std::size_t local_bytes;
  int max_threads_per_block;
  int registers;
  int ptx_version;
  int binary_version;
  int cache_mode_ca;
  int max_dynamic_shared_bytes;
  int preferred_shared_carveout;
};

/// The common beginning of cudaLaunchConfig_t and CUlaunchConfig.
struct LaunchConfig {
  Dim3 grid;
  Dim3 block;
  std::size_t dynamic_shared_bytes;
  Handle stream;
  void* attributes;
  unsigned attribute_count;
};

/// CUmemLocation / cudaMemLocation.
struct MemoryLocation {
  int type;  // 1: a device
  int id;
};

/// CUmemAllocationProp.
struct AllocationProperties {
  int type;
  int handle_types;
  MemoryLocation location;
  void* win32_metadata;
  unsigned char flags[8];
};

/// A handle for objects without state: programs compare handles and use them as keys. Unique in the process. Lock-free.
[[nodiscard]] inline Handle new_handle() {
  static std::atomic<std::uintptr_t> next{0x100000};
  return reinterpret_cast<Handle>(next.fetch_add(64, std::memory_order_relaxed));
}

}  // namespace tidemark::phantom
