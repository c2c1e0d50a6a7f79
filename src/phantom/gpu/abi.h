// The parts of CUDA's binary interface that the phantom GPU answers, in our own words.
//
// Enumerations are plain integers and handles plain pointers, as the calling convention passes them. Numbers are those
// of CUDA's documentation; tests compare them with NVIDIA's headers where these are installed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

/// Exports a function under its name in C, as a program that was linked with NVIDIA's library looks it up.
#define TIDEMARK_PHANTOM_API extern "C" __attribute__((visibility("default")))

/// In a function of that kind: an address of the code that called it.
#define TIDEMARK_PHANTOM_CALLER __builtin_return_address(0)

namespace tidemark::phantom {

using Handle = void*;                 ///< stream, event, graph, library handle: an opaque pointer
using DevicePointer = std::uint64_t;  ///< CUdeviceptr

struct Dim3 {
  std::uint32_t x;
  std::uint32_t y;
  std::uint32_t z;
};

/// cudaError and CUresult, which agree in these numbers.
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

/// cudaDeviceAttr and CUdevice_attribute, which agree: what of a device differs from one kind of GPU to another.
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

/// cudaLaunchConfig_t and CUlaunchConfig begin alike for runtime and driver.
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

/// For objects that hold nothing: programs compare handles and keep them as keys. A handle that no other object of the
/// process has. Lock-free.
[[nodiscard]] inline Handle new_handle() {
  static std::atomic<std::uintptr_t> next{0x100000};
  return reinterpret_cast<Handle>(next.fetch_add(64, std::memory_order_relaxed));
}

}  // namespace tidemark::phantom
