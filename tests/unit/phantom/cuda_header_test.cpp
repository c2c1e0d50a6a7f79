// This project's declarations of CUDA's runtime and driver compared with NVIDIA's headers.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/attributes.h"
#include "phantom/runtime/device_properties.h"
#include "unit/collect/vendor_header.h"

namespace tidemark::phantom {
namespace {

static_assert(sizeof(Handle) == sizeof(cudaStream_t) && sizeof(Handle) == sizeof(CUstream));
static_assert(sizeof(DevicePointer) == sizeof(CUdeviceptr));
static_assert(sizeof(Dim3) == sizeof(dim3));

// ---- numbers ----

/// A status of the runtime and of the driver.
#define SAME_STATUS(ours, runtime, driver) static_assert(int{ours} == int{runtime} && int{ours} == int{driver})
SAME_STATUS(kSuccess, cudaSuccess, CUDA_SUCCESS);
SAME_STATUS(kInvalidValue, cudaErrorInvalidValue, CUDA_ERROR_INVALID_VALUE);
SAME_STATUS(kOutOfMemory, cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY);
SAME_STATUS(kNoDevice, cudaErrorNoDevice, CUDA_ERROR_NO_DEVICE);
SAME_STATUS(kInvalidDevice, cudaErrorInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
SAME_STATUS(kInvalidHandle, cudaErrorInvalidResourceHandle, CUDA_ERROR_INVALID_HANDLE);
SAME_STATUS(kNotFound, cudaErrorSymbolNotFound, CUDA_ERROR_NOT_FOUND);
SAME_STATUS(kNotReady, cudaErrorNotReady, CUDA_ERROR_NOT_READY);
SAME_STATUS(kPeerAccessAlreadyEnabled, cudaErrorPeerAccessAlreadyEnabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
SAME_STATUS(kPeerAccessNotEnabled, cudaErrorPeerAccessNotEnabled, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
SAME_STATUS(kNotSupported, cudaErrorNotSupported, CUDA_ERROR_NOT_SUPPORTED);
SAME_STATUS(kStreamCaptureUnsupported, cudaErrorStreamCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
static_assert(int{kMemoryUnregistered} == int{cudaMemoryTypeUnregistered} &&
              int{kMemoryHost} == int{cudaMemoryTypeHost} && int{kMemoryDevice} == int{cudaMemoryTypeDevice} &&
              int{kMemoryManaged} == int{cudaMemoryTypeManaged});

// ---- device attributes ----

/// Results of device_attribute() for an H200.
struct Attribute {
  cudaDeviceAttr runtime;
  CUdevice_attribute driver;
  int value;
};

TEST(DeviceAttributes, AreNumberedAsNvidiaDoes) {
  const Profile& gpu = profile();
  const Attribute attributes[] = {
      {cudaDevAttrMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {cudaDevAttrMaxBlockDimZ, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
      {cudaDevAttrMaxGridDimX, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
      {cudaDevAttrMaxGridDimZ, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
      {cudaDevAttrMaxSharedMemoryPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
      {cudaDevAttrTotalConstantMemory, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
      {cudaDevAttrWarpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {cudaDevAttrMaxPitch, CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
      {cudaDevAttrMaxRegistersPerBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
      {cudaDevAttrClockRate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, gpu.clock_khz},
      {cudaDevAttrTextureAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
      {cudaDevAttrMultiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu.multiprocessors},
      {cudaDevAttrCanMapHostMemory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
      {cudaDevAttrConcurrentKernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
      {cudaDevAttrMemoryClockRate, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, gpu.memory_clock_khz},
      {cudaDevAttrGlobalMemoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, gpu.memory_bus_bits},
      {cudaDevAttrL2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, gpu.l2_cache},
      {cudaDevAttrMaxThreadsPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
      {cudaDevAttrAsyncEngineCount, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
      {cudaDevAttrUnifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
      {cudaDevAttrComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
      {cudaDevAttrComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
      {cudaDevAttrStreamPrioritiesSupported, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
       gpu.shared_per_multiprocessor},
      {cudaDevAttrMaxRegistersPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
      {cudaDevAttrManagedMemory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
      {cudaDevAttrConcurrentManagedAccess, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
      {cudaDevAttrComputePreemptionSupported, CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
      {cudaDevAttrCooperativeLaunch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
       gpu.shared_per_block_optin},
      {cudaDevAttrMaxBlocksPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
      {cudaDevAttrReservedSharedMemoryPerBlock, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
      {cudaDevAttrMemoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
  };
  for (const Attribute& each : attributes) {
    EXPECT_EQ(int{each.runtime}, int{each.driver});
    EXPECT_EQ(device_attribute(each.runtime, 0), each.value) << each.runtime;
  }
  EXPECT_EQ(device_attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0), 1);
  EXPECT_EQ(device_attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0), 1);
}

// ---- structs ----

SAME_FIELD(PointerAttributes, type, cudaPointerAttributes, type);
SAME_FIELD(PointerAttributes, device, cudaPointerAttributes, device);
SAME_FIELD(PointerAttributes, device_pointer, cudaPointerAttributes, devicePointer);
SAME_FIELD(PointerAttributes, host_pointer, cudaPointerAttributes, hostPointer);

SAME_FIELD(FunctionAttributes, shared_bytes, cudaFuncAttributes, sharedSizeBytes);
SAME_FIELD(FunctionAttributes, constant_bytes, cudaFuncAttributes, constSizeBytes);
SAME_FIELD(FunctionAttributes, local_bytes, cudaFuncAttributes, localSizeBytes);
SAME_FIELD(FunctionAttributes, max_threads_per_block, cudaFuncAttributes, maxThreadsPerBlock);
SAME_FIELD(FunctionAttributes, registers, cudaFuncAttributes, numRegs);
SAME_FIELD(FunctionAttributes, ptx_version, cudaFuncAttributes, ptxVersion);
SAME_FIELD(FunctionAttributes, binary_version, cudaFuncAttributes, binaryVersion);
SAME_FIELD(FunctionAttributes, cache_mode_ca, cudaFuncAttributes, cacheModeCA);
SAME_FIELD(FunctionAttributes, max_dynamic_shared_bytes, cudaFuncAttributes, maxDynamicSharedSizeBytes);
SAME_FIELD(FunctionAttributes, preferred_shared_carveout, cudaFuncAttributes, preferredShmemCarveout);
static_assert(sizeof(FunctionAttributes) <= sizeof(cudaFuncAttributes));

SAME_FIELD(LaunchConfig, grid, cudaLaunchConfig_t, gridDim);
SAME_FIELD(LaunchConfig, block, cudaLaunchConfig_t, blockDim);
SAME_FIELD(LaunchConfig, dynamic_shared_bytes, cudaLaunchConfig_t, dynamicSmemBytes);
SAME_FIELD(LaunchConfig, stream, cudaLaunchConfig_t, stream);
SAME_FIELD(LaunchConfig, attributes, cudaLaunchConfig_t, attrs);
SAME_FIELD(LaunchConfig, attribute_count, cudaLaunchConfig_t, numAttrs);

SAME_FIELD(MemoryLocation, type, CUmemLocation, type);
SAME_FIELD(MemoryLocation, id, CUmemLocation, id);
SAME_FIELD(AllocationProperties, type, CUmemAllocationProp, type);
SAME_FIELD(AllocationProperties, handle_types, CUmemAllocationProp, requestedHandleTypes);
SAME_FIELD(AllocationProperties, location, CUmemAllocationProp, location);
SAME_FIELD(AllocationProperties, win32_metadata, CUmemAllocationProp, win32HandleMetaData);
SAME_FIELD(AllocationProperties, flags, CUmemAllocationProp, allocFlags);
static_assert(sizeof(AllocationProperties) == sizeof(CUmemAllocationProp));

#if CUDART_VERSION >= 13000
using Properties = DeviceProperties13;
static_assert(sizeof(PointerAttributes) == sizeof(cudaPointerAttributes));
#else
using Properties = DeviceProperties12;
SAME_FIELD(Properties, clock_khz, cudaDeviceProp, clockRate);
SAME_FIELD(Properties, device_overlap, cudaDeviceProp, deviceOverlap);
SAME_FIELD(Properties, kernel_timeout, cudaDeviceProp, kernelExecTimeoutEnabled);
SAME_FIELD(Properties, compute_mode, cudaDeviceProp, computeMode);
SAME_FIELD(Properties, memory_clock_khz, cudaDeviceProp, memoryClockRate);
SAME_FIELD(Properties, single_to_double_ratio, cudaDeviceProp, singleToDoublePrecisionPerfRatio);
SAME_FIELD(Properties, cooperative_multi_device_launch, cudaDeviceProp, cooperativeMultiDeviceLaunch);
#endif
SAME_FIELD(Properties, name, cudaDeviceProp, name);
SAME_FIELD(Properties, uuid, cudaDeviceProp, uuid);
SAME_FIELD(Properties, luid, cudaDeviceProp, luid);
SAME_FIELD(Properties, luid_device_node_mask, cudaDeviceProp, luidDeviceNodeMask);
SAME_FIELD(Properties, total_memory, cudaDeviceProp, totalGlobalMem);
SAME_FIELD(Properties, shared_per_block, cudaDeviceProp, sharedMemPerBlock);
SAME_FIELD(Properties, registers_per_block, cudaDeviceProp, regsPerBlock);
SAME_FIELD(Properties, warp_size, cudaDeviceProp, warpSize);
SAME_FIELD(Properties, memory_pitch, cudaDeviceProp, memPitch);
SAME_FIELD(Properties, max_threads_per_block, cudaDeviceProp, maxThreadsPerBlock);
SAME_FIELD(Properties, max_threads_dim, cudaDeviceProp, maxThreadsDim);
SAME_FIELD(Properties, max_grid_size, cudaDeviceProp, maxGridSize);
SAME_FIELD(Properties, total_constant, cudaDeviceProp, totalConstMem);
SAME_FIELD(Properties, major, cudaDeviceProp, major);
SAME_FIELD(Properties, minor, cudaDeviceProp, minor);
SAME_FIELD(Properties, texture_alignment, cudaDeviceProp, textureAlignment);
SAME_FIELD(Properties, texture_pitch_alignment, cudaDeviceProp, texturePitchAlignment);
SAME_FIELD(Properties, multiprocessors, cudaDeviceProp, multiProcessorCount);
SAME_FIELD(Properties, integrated, cudaDeviceProp, integrated);
SAME_FIELD(Properties, can_map_host_memory, cudaDeviceProp, canMapHostMemory);
SAME_FIELD(Properties, surface_alignment, cudaDeviceProp, surfaceAlignment);
SAME_FIELD(Properties, concurrent_kernels, cudaDeviceProp, concurrentKernels);
SAME_FIELD(Properties, ecc_enabled, cudaDeviceProp, ECCEnabled);
SAME_FIELD(Properties, pci_bus, cudaDeviceProp, pciBusID);
SAME_FIELD(Properties, pci_device, cudaDeviceProp, pciDeviceID);
SAME_FIELD(Properties, pci_domain, cudaDeviceProp, pciDomainID);
SAME_FIELD(Properties, tcc_driver, cudaDeviceProp, tccDriver);
SAME_FIELD(Properties, async_engines, cudaDeviceProp, asyncEngineCount);
SAME_FIELD(Properties, unified_addressing, cudaDeviceProp, unifiedAddressing);
SAME_FIELD(Properties, memory_bus_bits, cudaDeviceProp, memoryBusWidth);
SAME_FIELD(Properties, l2_cache, cudaDeviceProp, l2CacheSize);
SAME_FIELD(Properties, persisting_l2_cache, cudaDeviceProp, persistingL2CacheMaxSize);
SAME_FIELD(Properties, threads_per_multiprocessor, cudaDeviceProp, maxThreadsPerMultiProcessor);
SAME_FIELD(Properties, stream_priorities, cudaDeviceProp, streamPrioritiesSupported);
SAME_FIELD(Properties, global_l1_cache, cudaDeviceProp, globalL1CacheSupported);
SAME_FIELD(Properties, local_l1_cache, cudaDeviceProp, localL1CacheSupported);
SAME_FIELD(Properties, shared_per_multiprocessor, cudaDeviceProp, sharedMemPerMultiprocessor);
SAME_FIELD(Properties, registers_per_multiprocessor, cudaDeviceProp, regsPerMultiprocessor);
SAME_FIELD(Properties, managed_memory, cudaDeviceProp, managedMemory);
SAME_FIELD(Properties, is_multi_gpu_board, cudaDeviceProp, isMultiGpuBoard);
SAME_FIELD(Properties, multi_gpu_board_group, cudaDeviceProp, multiGpuBoardGroupID);
SAME_FIELD(Properties, host_native_atomic, cudaDeviceProp, hostNativeAtomicSupported);
SAME_FIELD(Properties, pageable_memory_access, cudaDeviceProp, pageableMemoryAccess);
SAME_FIELD(Properties, concurrent_managed_access, cudaDeviceProp, concurrentManagedAccess);
SAME_FIELD(Properties, compute_preemption, cudaDeviceProp, computePreemptionSupported);
SAME_FIELD(Properties, host_pointer_for_registered, cudaDeviceProp, canUseHostPointerForRegisteredMem);
SAME_FIELD(Properties, cooperative_launch, cudaDeviceProp, cooperativeLaunch);
SAME_FIELD(Properties, shared_per_block_optin, cudaDeviceProp, sharedMemPerBlockOptin);
SAME_FIELD(Properties, pageable_memory_host_tables, cudaDeviceProp, pageableMemoryAccessUsesHostPageTables);
SAME_FIELD(Properties, direct_managed_access, cudaDeviceProp, directManagedMemAccessFromHost);
SAME_FIELD(Properties, blocks_per_multiprocessor, cudaDeviceProp, maxBlocksPerMultiProcessor);
SAME_FIELD(Properties, access_policy_window, cudaDeviceProp, accessPolicyMaxWindowSize);
SAME_FIELD(Properties, reserved_shared_per_block, cudaDeviceProp, reservedSharedMemPerBlock);
SAME_FIELD(Properties, host_register_supported, cudaDeviceProp, hostRegisterSupported);
SAME_FIELD(Properties, sparse_array_supported, cudaDeviceProp, sparseCudaArraySupported);
SAME_FIELD(Properties, host_register_read_only, cudaDeviceProp, hostRegisterReadOnlySupported);
SAME_FIELD(Properties, timeline_semaphores, cudaDeviceProp, timelineSemaphoreInteropSupported);
SAME_FIELD(Properties, memory_pools_supported, cudaDeviceProp, memoryPoolsSupported);
static_assert(sizeof(Properties) == sizeof(cudaDeviceProp));

}  // namespace
}  // namespace tidemark::phantom
