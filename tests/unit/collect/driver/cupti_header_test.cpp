// This project's declarations of CUPTI and of the CUDA driver API compared with NVIDIA's headers.
#define __CUDA_API_VERSION_INTERNAL  // with the types of earlier versions, which the structs of parameters name
#include <cuda.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <generated_cuda_meta.h>
#include <gtest/gtest.h>

#include <optional>

#include "collect/process/driver/array_size.h"
#include "collect/process/driver/cupti_api.h"
#include "unit/collect/vendor_header.h"

namespace tidemark::process::cuda {
namespace {

static_assert(sizeof(Result) == sizeof(CUresult) && sizeof(Result) == sizeof(CUptiResult));
static_assert(sizeof(Device) == sizeof(CUdevice));
static_assert(sizeof(Context) == sizeof(CUcontext));
static_assert(sizeof(Stream) == sizeof(CUstream));
static_assert(sizeof(MemoryPool) == sizeof(CUmemoryPool));
static_assert(sizeof(Array) == sizeof(CUarray) && sizeof(Array) == sizeof(CUmipmappedArray));
static_assert(sizeof(DevicePointer) == sizeof(CUdeviceptr));
static_assert(sizeof(AllocationHandle) == sizeof(CUmemGenericAllocationHandle));
static_assert(sizeof(SubscriberHandle) == sizeof(CUpti_SubscriberHandle));

// ---- calls ----

SAME_CALL(Callback*, CUpti_CallbackFunc);
SAME_CALL(Subscribe*, decltype(&cuptiSubscribe));
SAME_CALL(Unsubscribe*, decltype(&cuptiUnsubscribe));
SAME_CALL(EnableCallback*, decltype(&cuptiEnableCallback));
SAME_CALL(CtxGetDevice*, decltype(&cuCtxGetDevice));
SAME_CALL(DeviceGetMemPool*, decltype(&cuDeviceGetMemPool));
SAME_CALL(MemPoolGetAttribute*, decltype(&cuMemPoolGetAttribute));
SAME_CALL(DeviceGetGraphMemAttribute*, decltype(&cuDeviceGetGraphMemAttribute));

// ---- arguments of a callback ----

static_assert(sizeof(CallbackData) == sizeof(CUpti_CallbackData));
SAME_FIELD(CallbackData, site, CUpti_CallbackData, callbackSite);
SAME_FIELD(CallbackData, function_name, CUpti_CallbackData, functionName);
SAME_FIELD(CallbackData, parameters, CUpti_CallbackData, functionParams);
SAME_FIELD(CallbackData, return_value, CUpti_CallbackData, functionReturnValue);
SAME_FIELD(CallbackData, symbol_name, CUpti_CallbackData, symbolName);
SAME_FIELD(CallbackData, context, CUpti_CallbackData, context);
SAME_FIELD(CallbackData, context_uid, CUpti_CallbackData, contextUid);
SAME_FIELD(CallbackData, correlation_data, CUpti_CallbackData, correlationData);
SAME_FIELD(CallbackData, correlation_id, CUpti_CallbackData, correlationId);

// ---- parameters ----

/// The complete struct of the vendor.
#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs), #theirs)

#define ALLOCATES(theirs)                                \
  SAME_FIELD(AllocateParameters, address, theirs, dptr); \
  SAME_FIELD(AllocateParameters, bytes, theirs, bytesize)
ALLOCATES(cuMemAlloc_v2_params);
ALLOCATES(cuMemAllocManaged_params);
ALLOCATES(cuMemAllocAsync_params);
ALLOCATES(cuMemAllocAsync_ptsz_params);

SAME_SIZE(AllocatePitchParameters, cuMemAllocPitch_v2_params);
SAME_FIELD(AllocatePitchParameters, address, cuMemAllocPitch_v2_params, dptr);
SAME_FIELD(AllocatePitchParameters, pitch, cuMemAllocPitch_v2_params, pPitch);
SAME_FIELD(AllocatePitchParameters, width_bytes, cuMemAllocPitch_v2_params, WidthInBytes);
SAME_FIELD(AllocatePitchParameters, height, cuMemAllocPitch_v2_params, Height);
SAME_FIELD(AllocatePitchParameters, element_bytes, cuMemAllocPitch_v2_params, ElementSizeBytes);

#define ALLOCATES_HOST(theirs)                             \
  SAME_FIELD(AllocateHostParameters, address, theirs, pp); \
  SAME_FIELD(AllocateHostParameters, bytes, theirs, bytesize)
ALLOCATES_HOST(cuMemAllocHost_v2_params);
ALLOCATES_HOST(cuMemHostAlloc_params);

#define REGISTERS_HOST(theirs)                                 \
  SAME_SIZE(RegisterHostParameters, theirs);                   \
  SAME_FIELD(RegisterHostParameters, address, theirs, p);      \
  SAME_FIELD(RegisterHostParameters, bytes, theirs, bytesize); \
  SAME_FIELD(RegisterHostParameters, flags, theirs, Flags)
REGISTERS_HOST(cuMemHostRegister_params);
REGISTERS_HOST(cuMemHostRegister_v2_params);

SAME_SIZE(FreeParameters, cuMemFree_v2_params);
SAME_FIELD(FreeParameters, address, cuMemFree_v2_params, dptr);
SAME_SIZE(FreeHostParameters, cuMemFreeHost_params);
SAME_FIELD(FreeParameters, address, cuMemFreeAsync_params, dptr);
SAME_FIELD(FreeParameters, address, cuMemFreeAsync_ptsz_params, dptr);
SAME_FIELD(FreeHostParameters, address, cuMemFreeHost_params, p);
SAME_SIZE(FreeHostParameters, cuMemHostUnregister_params);
SAME_FIELD(FreeHostParameters, address, cuMemHostUnregister_params, p);

SAME_SIZE(Location, CUmemLocation);
SAME_FIELD(Location, type, CUmemLocation, type);
SAME_FIELD(Location, id, CUmemLocation, id);
SAME_SIZE(AllocationProperties, CUmemAllocationProp);
SAME_FIELD(AllocationProperties, type, CUmemAllocationProp, type);
SAME_FIELD(AllocationProperties, handle_types, CUmemAllocationProp, requestedHandleTypes);
SAME_FIELD(AllocationProperties, location, CUmemAllocationProp, location);
SAME_FIELD(AllocationProperties, win32, CUmemAllocationProp, win32HandleMetaData);
SAME_FIELD(AllocationProperties, flags, CUmemAllocationProp, allocFlags);

SAME_SIZE(CreateParameters, cuMemCreate_params);
SAME_FIELD(CreateParameters, handle, cuMemCreate_params, handle);
SAME_FIELD(CreateParameters, bytes, cuMemCreate_params, size);
SAME_FIELD(CreateParameters, properties, cuMemCreate_params, prop);
SAME_FIELD(CreateParameters, flags, cuMemCreate_params, flags);
SAME_SIZE(ReleaseParameters, cuMemRelease_params);
SAME_FIELD(ReleaseParameters, handle, cuMemRelease_params, handle);
SAME_SIZE(MapParameters, cuMemMap_params);
SAME_FIELD(MapParameters, address, cuMemMap_params, ptr);
SAME_FIELD(MapParameters, bytes, cuMemMap_params, size);
SAME_FIELD(MapParameters, offset, cuMemMap_params, offset);
SAME_FIELD(MapParameters, handle, cuMemMap_params, handle);
SAME_FIELD(MapParameters, flags, cuMemMap_params, flags);
SAME_SIZE(UnmapParameters, cuMemUnmap_params);
SAME_FIELD(UnmapParameters, address, cuMemUnmap_params, ptr);
SAME_FIELD(UnmapParameters, bytes, cuMemUnmap_params, size);
SAME_FIELD(AdoptParameters, handle, cuMemImportFromShareableHandle_params, handle);
SAME_FIELD(AdoptParameters, handle, cuMemRetainAllocationHandle_params, handle);
SAME_FIELD(AdoptParameters, handle, cuMulticastCreate_params, mcHandle);

#define ALLOCATES_FROM_POOL(theirs)                                \
  SAME_SIZE(AllocateFromPoolParameters, theirs);                   \
  SAME_FIELD(AllocateFromPoolParameters, address, theirs, dptr);   \
  SAME_FIELD(AllocateFromPoolParameters, bytes, theirs, bytesize); \
  SAME_FIELD(AllocateFromPoolParameters, pool, theirs, pool);      \
  SAME_FIELD(AllocateFromPoolParameters, stream, theirs, hStream)
ALLOCATES_FROM_POOL(cuMemAllocFromPoolAsync_params);
ALLOCATES_FROM_POOL(cuMemAllocFromPoolAsync_ptsz_params);
SAME_FIELD(PoolProperties, type, CUmemPoolProps, allocType);
SAME_FIELD(PoolProperties, handle_types, CUmemPoolProps, handleTypes);
SAME_FIELD(PoolProperties, location, CUmemPoolProps, location);
SAME_SIZE(CreatePoolParameters, cuMemPoolCreate_params);
SAME_FIELD(CreatePoolParameters, pool, cuMemPoolCreate_params, pool);
SAME_FIELD(CreatePoolParameters, properties, cuMemPoolCreate_params, poolProps);
SAME_SIZE(DeviceParameters, cuDevicePrimaryCtxReset_v2_params);
SAME_FIELD(DeviceParameters, device, cuDevicePrimaryCtxReset_v2_params, dev);
SAME_SIZE(DeviceParameters, cuDeviceGraphMemTrim_params);
SAME_FIELD(DeviceParameters, device, cuDeviceGraphMemTrim_params, device);
SAME_FIELD(PoolParameters, pool, cuMemPoolTrimTo_params, pool);
SAME_SIZE(PoolParameters, cuMemPoolDestroy_params);
SAME_FIELD(PoolParameters, pool, cuMemPoolDestroy_params, pool);

SAME_SIZE(ArrayDescription, CUDA_ARRAY_DESCRIPTOR);
SAME_FIELD(ArrayDescription, width, CUDA_ARRAY_DESCRIPTOR, Width);
SAME_FIELD(ArrayDescription, height, CUDA_ARRAY_DESCRIPTOR, Height);
SAME_FIELD(ArrayDescription, format, CUDA_ARRAY_DESCRIPTOR, Format);
SAME_FIELD(ArrayDescription, channels, CUDA_ARRAY_DESCRIPTOR, NumChannels);
SAME_SIZE(Array3DDescription, CUDA_ARRAY3D_DESCRIPTOR);
SAME_FIELD(Array3DDescription, width, CUDA_ARRAY3D_DESCRIPTOR, Width);
SAME_FIELD(Array3DDescription, height, CUDA_ARRAY3D_DESCRIPTOR, Height);
SAME_FIELD(Array3DDescription, depth, CUDA_ARRAY3D_DESCRIPTOR, Depth);
SAME_FIELD(Array3DDescription, format, CUDA_ARRAY3D_DESCRIPTOR, Format);
SAME_FIELD(Array3DDescription, channels, CUDA_ARRAY3D_DESCRIPTOR, NumChannels);
SAME_FIELD(Array3DDescription, flags, CUDA_ARRAY3D_DESCRIPTOR, Flags);
SAME_SIZE(CreateArrayParameters, cuArrayCreate_v2_params);
SAME_FIELD(CreateArrayParameters, array, cuArrayCreate_v2_params, pHandle);
SAME_FIELD(CreateArrayParameters, description, cuArrayCreate_v2_params, pAllocateArray);
SAME_SIZE(CreateArray3DParameters, cuArray3DCreate_v2_params);
SAME_FIELD(CreateArray3DParameters, array, cuArray3DCreate_v2_params, pHandle);
SAME_FIELD(CreateArray3DParameters, description, cuArray3DCreate_v2_params, pAllocateArray);
SAME_SIZE(CreateMipmappedArrayParameters, cuMipmappedArrayCreate_params);
SAME_FIELD(CreateArray3DParameters, array, cuMipmappedArrayCreate_params, pHandle);
SAME_FIELD(CreateArray3DParameters, description, cuMipmappedArrayCreate_params, pMipmappedArrayDesc);
SAME_FIELD(CreateMipmappedArrayParameters, levels, cuMipmappedArrayCreate_params, numMipmapLevels);
SAME_SIZE(ArrayParameters, cuArrayDestroy_params);
SAME_FIELD(ArrayParameters, array, cuArrayDestroy_params, hArray);
SAME_SIZE(ArrayParameters, cuMipmappedArrayDestroy_params);
SAME_FIELD(ArrayParameters, array, cuMipmappedArrayDestroy_params, hMipmappedArray);

// ---- numbers ----

TEST(CuptiHeader, Constants) {
  EXPECT_EQ(kSuccess, int{CUDA_SUCCESS});
  EXPECT_EQ(kSuccess, int{CUPTI_SUCCESS});
  EXPECT_EQ(kMultipleSubscribers, int{CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED});
  EXPECT_EQ(kDriverApiDomain, unsigned{CUPTI_CB_DOMAIN_DRIVER_API});
  EXPECT_EQ(static_cast<unsigned>(Site::enter), unsigned{CUPTI_API_ENTER});
  EXPECT_EQ(static_cast<unsigned>(Site::exit), unsigned{CUPTI_API_EXIT});
  EXPECT_EQ(kLocationDevice, int{CU_MEM_LOCATION_TYPE_DEVICE});
  EXPECT_EQ(kPoolReservedNow, int{CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT});
  EXPECT_EQ(kGraphReservedNow, int{CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT});
}

// Formats with whole bytes per channel, and others.
TEST(CuptiHeader, ArrayFormats) {
  const auto bytes = [](CUarray_format format, unsigned flags = 0) {
    std::uint64_t size = 0;
    const bool is_known = array_bytes({10, 0, 0, static_cast<std::int32_t>(format), 1, flags}, 1, &size);
    return is_known ? std::optional(size) : std::nullopt;
  };
  for (const CUarray_format format :
       {CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_UNORM_INT8X1, CU_AD_FORMAT_UNORM_INT8X2,
        CU_AD_FORMAT_UNORM_INT8X4, CU_AD_FORMAT_SNORM_INT8X1, CU_AD_FORMAT_SNORM_INT8X2, CU_AD_FORMAT_SNORM_INT8X4}) {
    EXPECT_EQ(bytes(format), 10U) << format;
  }
  for (const CUarray_format format :
       {CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_HALF, CU_AD_FORMAT_UNORM_INT16X1,
        CU_AD_FORMAT_UNORM_INT16X2, CU_AD_FORMAT_UNORM_INT16X4, CU_AD_FORMAT_SNORM_INT16X1, CU_AD_FORMAT_SNORM_INT16X2,
        CU_AD_FORMAT_SNORM_INT16X4}) {
    EXPECT_EQ(bytes(format), 20U) << format;
  }
  for (const CUarray_format format : {CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32, CU_AD_FORMAT_FLOAT}) {
    EXPECT_EQ(bytes(format), 40U) << format;
  }
  for (const CUarray_format format : {CU_AD_FORMAT_NV12, CU_AD_FORMAT_BC1_UNORM, CU_AD_FORMAT_BC7_UNORM_SRGB,
                                      CU_AD_FORMAT_P010, CU_AD_FORMAT_Y444_PLANAR8, CU_AD_FORMAT_MAX}) {
    EXPECT_EQ(bytes(format), std::nullopt) << format;
  }
  EXPECT_EQ(bytes(CU_AD_FORMAT_FLOAT, CUDA_ARRAY3D_SPARSE), 0U);
  EXPECT_EQ(bytes(CU_AD_FORMAT_FLOAT, CUDA_ARRAY3D_DEFERRED_MAPPING), 0U);
}

TEST(CuptiHeader, Ids) {
#define SAME_ID(name) EXPECT_EQ(id::name, unsigned{CUPTI_DRIVER_TRACE_CBID_cu##name})
  SAME_ID(CtxSynchronize);
  SAME_ID(MemFreeHost);
  SAME_ID(MemHostAlloc);
  SAME_ID(ArrayDestroy);
  SAME_ID(EventSynchronize);
  SAME_ID(StreamSynchronize);
  SAME_ID(MemAlloc_v2);
  SAME_ID(MemAllocPitch_v2);
  SAME_ID(MemFree_v2);
  SAME_ID(MemHostAlloc_v2);
  SAME_ID(ArrayCreate_v2);
  SAME_ID(Array3DCreate_v2);
  SAME_ID(MemAllocHost_v2);
  SAME_ID(MemHostRegister);
  SAME_ID(MemHostUnregister);
  SAME_ID(MipmappedArrayCreate);
  SAME_ID(MipmappedArrayDestroy);
  SAME_ID(MemAllocManaged);
  SAME_ID(MemHostRegister_v2);
  SAME_ID(StreamSynchronize_ptsz);
  SAME_ID(GraphLaunch);
  SAME_ID(GraphLaunch_ptsz);
  SAME_ID(DevicePrimaryCtxReset_v2);
  SAME_ID(MemCreate);
  SAME_ID(MemRelease);
  SAME_ID(MemMap);
  SAME_ID(MemUnmap);
  SAME_ID(MemImportFromShareableHandle);
  SAME_ID(MemRetainAllocationHandle);
  SAME_ID(GraphUpload);
  SAME_ID(GraphUpload_ptsz);
  SAME_ID(MemAllocAsync);
  SAME_ID(MemAllocAsync_ptsz);
  SAME_ID(MemFreeAsync);
  SAME_ID(MemFreeAsync_ptsz);
  SAME_ID(MemPoolTrimTo);
  SAME_ID(MemPoolCreate);
  SAME_ID(MemPoolDestroy);
  SAME_ID(MemAllocFromPoolAsync);
  SAME_ID(MemAllocFromPoolAsync_ptsz);
  SAME_ID(GraphAddMemAllocNode);
  SAME_ID(DeviceGraphMemTrim);
  SAME_ID(MulticastCreate);
  SAME_ID(GraphAddNode);
  SAME_ID(GraphAddNode_v2);
}

}  // namespace
}  // namespace tidemark::process::cuda
