// This project's declarations of NVML compared with NVIDIA's nvml.h.
#define NVML_NO_UNVERSIONED_FUNC_DEFS  // the functions of each version by their own names
#include <gtest/gtest.h>
#include <nvml.h>

#include "collect/machine/nvml_api.h"
#include "unit/collect/vendor_header.h"

namespace tidemark::nvml {
namespace {

#define SAME_FUNCTION(member, function) SAME_CALL(decltype(Functions::member), decltype(&function))

SAME_FUNCTION(init, nvmlInit_v2);
SAME_FUNCTION(shutdown, nvmlShutdown);
SAME_FUNCTION(error_string, nvmlErrorString);
SAME_FUNCTION(driver_version, nvmlSystemGetDriverVersion);
SAME_FUNCTION(cuda_version, nvmlSystemGetCudaDriverVersion);
SAME_FUNCTION(cuda_version, nvmlSystemGetCudaDriverVersion_v2);
SAME_FUNCTION(device_count, nvmlDeviceGetCount_v2);
SAME_FUNCTION(device_by_index, nvmlDeviceGetHandleByIndex_v2);
SAME_FUNCTION(name, nvmlDeviceGetName);
SAME_FUNCTION(uuid, nvmlDeviceGetUUID);
SAME_FUNCTION(pci_info, nvmlDeviceGetPciInfo_v3);
SAME_FUNCTION(memory, nvmlDeviceGetMemoryInfo);
SAME_FUNCTION(memory_v2, nvmlDeviceGetMemoryInfo_v2);
SAME_FUNCTION(utilization, nvmlDeviceGetUtilizationRates);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // since NVML 13; older drivers lack the replacement
SAME_FUNCTION(temperature, nvmlDeviceGetTemperature);
#pragma GCC diagnostic pop
SAME_FUNCTION(power, nvmlDeviceGetPowerUsage);
SAME_FUNCTION(compute_processes, nvmlDeviceGetComputeRunningProcesses_v3);
SAME_FUNCTION(graphics_processes, nvmlDeviceGetGraphicsRunningProcesses_v3);
SAME_FUNCTION(mig_mode, nvmlDeviceGetMigMode);
SAME_FUNCTION(mig_count, nvmlDeviceGetMaxMigDeviceCount);
SAME_FUNCTION(mig_by_index, nvmlDeviceGetMigDeviceHandleByIndex);

static_assert(sizeof(Memory) == sizeof(nvmlMemory_t));
SAME_FIELD(Memory, total, nvmlMemory_t, total);
SAME_FIELD(Memory, free, nvmlMemory_t, free);
SAME_FIELD(Memory, used, nvmlMemory_t, used);

static_assert(sizeof(MemoryV2) == sizeof(nvmlMemory_v2_t));
SAME_FIELD(MemoryV2, version, nvmlMemory_v2_t, version);
SAME_FIELD(MemoryV2, total, nvmlMemory_v2_t, total);
SAME_FIELD(MemoryV2, reserved, nvmlMemory_v2_t, reserved);
SAME_FIELD(MemoryV2, free, nvmlMemory_v2_t, free);
SAME_FIELD(MemoryV2, used, nvmlMemory_v2_t, used);
static_assert(kMemoryV2 == nvmlMemory_v2);

static_assert(sizeof(Utilization) == sizeof(nvmlUtilization_t));
SAME_FIELD(Utilization, gpu, nvmlUtilization_t, gpu);
SAME_FIELD(Utilization, memory, nvmlUtilization_t, memory);

static_assert(sizeof(PciInfo) == sizeof(nvmlPciInfo_t));
SAME_FIELD(PciInfo, domain, nvmlPciInfo_t, domain);
SAME_FIELD(PciInfo, bus, nvmlPciInfo_t, bus);
SAME_FIELD(PciInfo, device, nvmlPciInfo_t, device);
SAME_FIELD(PciInfo, bus_id, nvmlPciInfo_t, busId);

static_assert(sizeof(Process) == sizeof(nvmlProcessInfo_t));
SAME_FIELD(Process, pid, nvmlProcessInfo_t, pid);
SAME_FIELD(Process, used_bytes, nvmlProcessInfo_t, usedGpuMemory);
SAME_FIELD(Process, gpu_instance, nvmlProcessInfo_t, gpuInstanceId);
SAME_FIELD(Process, compute_instance, nvmlProcessInfo_t, computeInstanceId);
static_assert(sizeof(ProcessV1) == sizeof(nvmlProcessInfo_v1_t));
SAME_FIELD(ProcessV1, pid, nvmlProcessInfo_v1_t, pid);
SAME_FIELD(ProcessV1, used_bytes, nvmlProcessInfo_v1_t, usedGpuMemory);
static_assert(kNotAvailable == static_cast<unsigned long long>(NVML_VALUE_NOT_AVAILABLE));

TEST(NvmlHeader, Constants) {
  EXPECT_EQ(int{kSuccess}, int{NVML_SUCCESS});
  EXPECT_EQ(int{kNotSupported}, int{NVML_ERROR_NOT_SUPPORTED});
  EXPECT_EQ(int{kNoPermission}, int{NVML_ERROR_NO_PERMISSION});
  EXPECT_EQ(int{kInsufficientSize}, int{NVML_ERROR_INSUFFICIENT_SIZE});
  EXPECT_EQ(int{kDriverNotLoaded}, int{NVML_ERROR_DRIVER_NOT_LOADED});
  EXPECT_EQ(int{kFunctionNotFound}, int{NVML_ERROR_FUNCTION_NOT_FOUND});
  EXPECT_EQ(int{kGpuIsLost}, int{NVML_ERROR_GPU_IS_LOST});
  EXPECT_EQ(int{kResetRequired}, int{NVML_ERROR_RESET_REQUIRED});
  EXPECT_EQ(int{kVersionMismatch}, int{NVML_ERROR_LIB_RM_VERSION_MISMATCH});
  EXPECT_EQ(kTemperatureGpu, int{NVML_TEMPERATURE_GPU});
  EXPECT_EQ(kMigEnabled, static_cast<unsigned>(NVML_DEVICE_MIG_ENABLE));
  EXPECT_GE(kTextBytes, static_cast<unsigned>(NVML_DEVICE_NAME_V2_BUFFER_SIZE));
  EXPECT_GE(kTextBytes, static_cast<unsigned>(NVML_DEVICE_UUID_V2_BUFFER_SIZE));
  EXPECT_GE(kTextBytes, static_cast<unsigned>(NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE));
}

}  // namespace
}  // namespace tidemark::nvml
