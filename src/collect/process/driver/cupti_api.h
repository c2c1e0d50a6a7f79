// The parts of CUPTI and of the CUDA driver API that this library uses, declared here so that building needs nothing of
// NVIDIA's. tests/unit/collect/driver/cupti_header_test.cpp compares every line with the vendor's headers.
//
// CUPTI calls a subscriber at the entry and at the exit of the driver functions that it has enabled, on the thread that
// called them (CUPTI documentation, "Callback API").
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark::process::cuda {

using Result = int;  ///< CUresult and CUptiResult; 0 is success in both
inline constexpr Result kSuccess = 0;
inline constexpr Result kMultipleSubscribers = 39;  ///< CUPTI: another subscriber holds the only subscription

using Device = int;
using Context = void*;
using Stream = void*;
using MemoryPool = void*;
using Array = void*;  ///< CUarray and CUmipmappedArray
using DevicePointer = std::uint64_t;
using AllocationHandle = std::uint64_t;  ///< CUmemGenericAllocationHandle

// ---- CUPTI ----

using SubscriberHandle = void*;
inline constexpr std::uint32_t kDriverApiDomain = 1;  ///< CUPTI_CB_DOMAIN_DRIVER_API

/// CUpti_ApiCallbackSite
enum class Site : std::uint32_t { enter = 0, exit = 1 };

/// CUpti_CallbackData
struct CallbackData {
  Site site;
  const char* function_name;
  const void* parameters;  ///< one of the structs below, by the function's id
  void* return_value;      ///< at the exit: a Result
  const char* symbol_name;
  Context context;
  std::uint32_t context_uid;  ///< unique in the process
  std::uint64_t* correlation_data;
  std::uint32_t correlation_id;
};

using Callback = void(void* user_data, std::uint32_t domain, std::uint32_t id, const CallbackData* data);

using Subscribe = Result(SubscriberHandle* subscriber, Callback* callback, void* user_data);
using Unsubscribe = Result(SubscriberHandle subscriber);
using EnableCallback = Result(std::uint32_t enable, SubscriberHandle subscriber, std::uint32_t domain,
                              std::uint32_t id);

// ---- ids of driver functions (CUPTI_DRIVER_TRACE_CBID_cu...) ----

namespace id {
inline constexpr std::uint32_t CtxSynchronize = 17;
inline constexpr std::uint32_t MemFreeHost = 38;
inline constexpr std::uint32_t MemHostAlloc = 39;
inline constexpr std::uint32_t ArrayDestroy = 89;
inline constexpr std::uint32_t EventSynchronize = 121;
inline constexpr std::uint32_t StreamSynchronize = 126;
inline constexpr std::uint32_t MemAlloc_v2 = 243;
inline constexpr std::uint32_t MemAllocPitch_v2 = 244;
inline constexpr std::uint32_t MemFree_v2 = 245;
inline constexpr std::uint32_t MemHostAlloc_v2 = 271;
inline constexpr std::uint32_t ArrayCreate_v2 = 272;
inline constexpr std::uint32_t Array3DCreate_v2 = 274;
inline constexpr std::uint32_t MemAllocHost_v2 = 294;
inline constexpr std::uint32_t MemHostRegister = 301;
inline constexpr std::uint32_t MemHostUnregister = 302;
inline constexpr std::uint32_t MipmappedArrayCreate = 347;
inline constexpr std::uint32_t MipmappedArrayDestroy = 349;
inline constexpr std::uint32_t MemAllocManaged = 371;
inline constexpr std::uint32_t MemHostRegister_v2 = 379;
inline constexpr std::uint32_t StreamSynchronize_ptsz = 440;
inline constexpr std::uint32_t GraphLaunch = 514;
inline constexpr std::uint32_t GraphLaunch_ptsz = 515;
inline constexpr std::uint32_t DevicePrimaryCtxReset_v2 = 545;
inline constexpr std::uint32_t MemCreate = 549;
inline constexpr std::uint32_t MemRelease = 550;
inline constexpr std::uint32_t MemMap = 551;
inline constexpr std::uint32_t MemUnmap = 552;
inline constexpr std::uint32_t MemImportFromShareableHandle = 555;
inline constexpr std::uint32_t MemRetainAllocationHandle = 565;
inline constexpr std::uint32_t GraphUpload = 580;
inline constexpr std::uint32_t GraphUpload_ptsz = 581;
inline constexpr std::uint32_t MemAllocAsync = 598;
inline constexpr std::uint32_t MemAllocAsync_ptsz = 599;
inline constexpr std::uint32_t MemFreeAsync = 600;
inline constexpr std::uint32_t MemFreeAsync_ptsz = 601;
inline constexpr std::uint32_t MemPoolTrimTo = 602;
inline constexpr std::uint32_t MemPoolCreate = 607;
inline constexpr std::uint32_t MemPoolDestroy = 608;
inline constexpr std::uint32_t MemAllocFromPoolAsync = 611;
inline constexpr std::uint32_t MemAllocFromPoolAsync_ptsz = 612;
inline constexpr std::uint32_t GraphAddMemAllocNode = 638;
inline constexpr std::uint32_t DeviceGraphMemTrim = 640;
inline constexpr std::uint32_t MulticastCreate = 706;
inline constexpr std::uint32_t GraphAddNode = 712;
inline constexpr std::uint32_t GraphAddNode_v2 = 723;
}  // namespace id

// ---- parameters of driver functions (NAME_params of generated_cuda_meta.h) ----

/// Common prefix of cuMemAlloc_v2, cuMemAllocManaged, cuMemAllocAsync
struct AllocateParameters {
  DevicePointer* address;
  std::size_t bytes;
};
struct AllocatePitchParameters {
  DevicePointer* address;
  std::size_t* pitch;
  std::size_t width_bytes;
  std::size_t height;
  unsigned element_bytes;
};
/// Common prefix of cuMemAllocHost_v2, cuMemHostAlloc
struct AllocateHostParameters {
  void** address;
  std::size_t bytes;
};
/// cuMemHostRegister_v2
struct RegisterHostParameters {
  void* address;
  std::size_t bytes;
  unsigned flags;
};
/// cuMemFree_v2
struct FreeParameters {
  DevicePointer address;
};
/// cuMemFreeHost, cuMemHostUnregister
struct FreeHostParameters {
  void* address;
};
/// CUmemLocation
struct Location {
  std::int32_t type;
  std::int32_t id;
};
inline constexpr std::int32_t kLocationDevice = 1;
/// CUmemAllocationProp
struct AllocationProperties {
  std::int32_t type;
  std::int32_t handle_types;
  Location location;
  void* win32;
  unsigned char flags[8];
};
struct CreateParameters {
  AllocationHandle* handle;
  std::size_t bytes;
  const AllocationProperties* properties;
  unsigned long long flags;
};
struct ReleaseParameters {
  AllocationHandle handle;
};
struct MapParameters {
  DevicePointer address;
  std::size_t bytes;
  std::size_t offset;
  AllocationHandle handle;
  unsigned long long flags;
};
struct UnmapParameters {
  DevicePointer address;
  std::size_t bytes;
};
/// Common prefix of cuMemImportFromShareableHandle, cuMemRetainAllocationHandle, cuMulticastCreate
struct AdoptParameters {
  AllocationHandle* handle;
};
/// The beginning of CUmemPoolProps.
struct PoolProperties {
  std::int32_t type;
  std::int32_t handle_types;
  Location location;
};
struct CreatePoolParameters {
  MemoryPool* pool;
  const PoolProperties* properties;
};
struct AllocateFromPoolParameters {
  DevicePointer* address;
  std::size_t bytes;
  MemoryPool pool;
  Stream stream;
};
/// cuDevicePrimaryCtxReset_v2, cuDeviceGraphMemTrim
struct DeviceParameters {
  Device device;
};
/// Common prefix of cuMemPoolTrimTo, cuMemPoolDestroy
struct PoolParameters {
  MemoryPool pool;
};
/// CUDA_ARRAY_DESCRIPTOR; an extent of 0 is a dimension that the array does not have
struct ArrayDescription {
  std::size_t width;
  std::size_t height;
  std::int32_t format;
  unsigned channels;
};
/// CUDA_ARRAY3D_DESCRIPTOR
struct Array3DDescription {
  std::size_t width;
  std::size_t height;
  std::size_t depth;
  std::int32_t format;
  unsigned channels;
  unsigned flags;
};
/// cuArrayCreate_v2
struct CreateArrayParameters {
  Array* array;
  const ArrayDescription* description;
};
/// cuArray3DCreate_v2, and the beginning of cuMipmappedArrayCreate
struct CreateArray3DParameters {
  Array* array;
  const Array3DDescription* description;
};
struct CreateMipmappedArrayParameters {
  CreateArray3DParameters common;
  unsigned levels;
};
/// cuArrayDestroy, cuMipmappedArrayDestroy
struct ArrayParameters {
  Array array;
};

// ---- functions of the driver that this library calls ----

using CtxGetDevice = Result(Device* device);
using DeviceGetMemPool = Result(MemoryPool* pool, Device device);
using MemPoolGetAttribute = Result(MemoryPool pool, std::int32_t attribute, void* value);
using DeviceGetGraphMemAttribute = Result(Device device, std::int32_t attribute, void* value);
inline constexpr std::int32_t kPoolReservedNow = 5;   ///< CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
inline constexpr std::int32_t kGraphReservedNow = 2;  ///< CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT

}  // namespace tidemark::process::cuda
