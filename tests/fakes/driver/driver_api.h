// The functions of the stand-in for libcuda: from NVIDIA's cuda.h with the same names and arguments.
#pragma once

#include "collect/process/driver/cupti_api.h"

namespace fakes {

using tidemark::process::cuda::AllocationHandle;
using tidemark::process::cuda::AllocationProperties;
using tidemark::process::cuda::Array;
using tidemark::process::cuda::Array3DDescription;
using tidemark::process::cuda::ArrayDescription;
using tidemark::process::cuda::CallbackData;
using tidemark::process::cuda::Context;
using tidemark::process::cuda::Device;
using tidemark::process::cuda::DevicePointer;
using tidemark::process::cuda::kSuccess;
using tidemark::process::cuda::Location;
using tidemark::process::cuda::MemoryPool;
using tidemark::process::cuda::Result;
using tidemark::process::cuda::Stream;

// CUresult
inline constexpr Result kInvalidValue = 1;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kNotInitialized = 3;
inline constexpr Result kInvalidDevice = 101;
inline constexpr Result kInvalidContext = 201;

inline constexpr std::int32_t kPoolReleaseThreshold = 4;  ///< CU_MEMPOOL_ATTR_RELEASE_THRESHOLD

using Event = void*;
using Graph = void*;
using GraphNode = void*;
using GraphExec = void*;

/// CUmemPoolProps
struct PoolDescription {
  tidemark::process::cuda::PoolProperties beginning;
  void* win32;
  std::size_t max_bytes;
  unsigned short usage;
  unsigned char reserved[54];
};
/// CUDA_MEM_ALLOC_NODE_PARAMS
struct GraphAllocation {
  PoolDescription pool;
  const void* access;
  std::size_t access_count;
  std::size_t bytes;
  DevicePointer address;
};
/// CUgraphNodeParams of a node that allocates
struct GraphNodeDescription {
  int type = 10;  ///< CU_GRAPH_NODE_TYPE_MEM_ALLOC
  int reserved[3] = {};
  GraphAllocation allocation;
};
/// CUmulticastObjectProp
struct MulticastProperties {
  unsigned devices;
  std::size_t bytes;
  unsigned long long handle_types;
  unsigned long long flags;
};

/// The callback of the stand-in for CUPTI: called at the entry and at the exit of each call, on its thread.
using Hook = void(std::uint32_t id, const CallbackData& data);

}  // namespace fakes

extern "C" {

void fakes_cuda_set_hook(fakes::Hook* hook);

fakes::Result cuInit(unsigned flags);
fakes::Result cuDeviceGetCount(int* count);
fakes::Result cuDevicePrimaryCtxRetain(fakes::Context* context, fakes::Device device);
fakes::Result cuDevicePrimaryCtxReset_v2(fakes::Device device);
fakes::Result cuCtxSetCurrent(fakes::Context context);
fakes::Result cuCtxGetDevice(fakes::Device* device);
fakes::Result cuCtxSynchronize();
fakes::Result cuStreamSynchronize(fakes::Stream stream);
fakes::Result cuStreamSynchronize_ptsz(fakes::Stream stream);
fakes::Result cuEventSynchronize(fakes::Event event);

fakes::Result cuMemAlloc_v2(fakes::DevicePointer* address, std::size_t bytes);
fakes::Result cuMemAllocPitch_v2(fakes::DevicePointer* address, std::size_t* pitch, std::size_t width_bytes,
                                 std::size_t height, unsigned element_bytes);
fakes::Result cuMemAllocManaged(fakes::DevicePointer* address, std::size_t bytes, unsigned flags);
fakes::Result cuMemFree_v2(fakes::DevicePointer address);

fakes::Result cuArrayCreate_v2(fakes::Array* array, const fakes::ArrayDescription* description);
fakes::Result cuArray3DCreate_v2(fakes::Array* array, const fakes::Array3DDescription* description);
fakes::Result cuMipmappedArrayCreate(fakes::Array* array, const fakes::Array3DDescription* description,
                                     unsigned levels);
fakes::Result cuArrayDestroy(fakes::Array array);
fakes::Result cuMipmappedArrayDestroy(fakes::Array array);

fakes::Result cuMemAllocHost_v2(void** address, std::size_t bytes);
fakes::Result cuMemHostAlloc(void** address, std::size_t bytes, unsigned flags);
fakes::Result cuMemFreeHost(void* address);
fakes::Result cuMemHostRegister_v2(void* address, std::size_t bytes, unsigned flags);
fakes::Result cuMemHostUnregister(void* address);

fakes::Result cuMemAddressReserve(fakes::DevicePointer* address, std::size_t bytes, std::size_t alignment,
                                  fakes::DevicePointer wish, unsigned long long flags);
fakes::Result cuMemAddressFree(fakes::DevicePointer address, std::size_t bytes);
fakes::Result cuMemCreate(fakes::AllocationHandle* handle, std::size_t bytes,
                          const fakes::AllocationProperties* properties, unsigned long long flags);
fakes::Result cuMemRelease(fakes::AllocationHandle handle);
fakes::Result cuMemMap(fakes::DevicePointer address, std::size_t bytes, std::size_t offset,
                       fakes::AllocationHandle handle, unsigned long long flags);
fakes::Result cuMemUnmap(fakes::DevicePointer address, std::size_t bytes);
fakes::Result cuMemRetainAllocationHandle(fakes::AllocationHandle* handle, void* address);
fakes::Result cuMemImportFromShareableHandle(fakes::AllocationHandle* handle, void* os_handle, int type);
fakes::Result cuMulticastCreate(fakes::AllocationHandle* handle, const fakes::MulticastProperties* properties);

fakes::Result cuDeviceGetMemPool(fakes::MemoryPool* pool, fakes::Device device);
fakes::Result cuMemPoolCreate(fakes::MemoryPool* pool, const fakes::PoolDescription* description);
fakes::Result cuMemPoolDestroy(fakes::MemoryPool pool);
fakes::Result cuMemPoolSetAttribute(fakes::MemoryPool pool, std::int32_t attribute, void* value);
fakes::Result cuMemPoolGetAttribute(fakes::MemoryPool pool, std::int32_t attribute, void* value);
fakes::Result cuMemPoolTrimTo(fakes::MemoryPool pool, std::size_t least_bytes);
fakes::Result cuMemAllocAsync(fakes::DevicePointer* address, std::size_t bytes, fakes::Stream stream);
fakes::Result cuMemAllocAsync_ptsz(fakes::DevicePointer* address, std::size_t bytes, fakes::Stream stream);
fakes::Result cuMemAllocFromPoolAsync(fakes::DevicePointer* address, std::size_t bytes, fakes::MemoryPool pool,
                                      fakes::Stream stream);
fakes::Result cuMemAllocFromPoolAsync_ptsz(fakes::DevicePointer* address, std::size_t bytes, fakes::MemoryPool pool,
                                           fakes::Stream stream);
fakes::Result cuMemFreeAsync(fakes::DevicePointer address, fakes::Stream stream);
fakes::Result cuMemFreeAsync_ptsz(fakes::DevicePointer address, fakes::Stream stream);

fakes::Result cuGraphCreate(fakes::Graph* graph, unsigned flags);
fakes::Result cuGraphAddMemAllocNode(fakes::GraphNode* node, fakes::Graph graph, const fakes::GraphNode* before,
                                     std::size_t before_count, fakes::GraphAllocation* allocation);
fakes::Result cuGraphAddNode_v2(fakes::GraphNode* node, fakes::Graph graph, const fakes::GraphNode* before,
                                const void* edges, std::size_t before_count, fakes::GraphNodeDescription* description);
fakes::Result cuGraphInstantiateWithFlags(fakes::GraphExec* exec, fakes::Graph graph, unsigned long long flags);
fakes::Result cuGraphUpload(fakes::GraphExec exec, fakes::Stream stream);
fakes::Result cuGraphLaunch(fakes::GraphExec exec, fakes::Stream stream);
fakes::Result cuGraphLaunch_ptsz(fakes::GraphExec exec, fakes::Stream stream);
fakes::Result cuDeviceGraphMemTrim(fakes::Device device);
fakes::Result cuDeviceGetGraphMemAttribute(fakes::Device device, std::int32_t attribute, void* value);
}
