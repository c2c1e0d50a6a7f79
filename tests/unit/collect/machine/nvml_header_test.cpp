// Our declarations of NVML against NVIDIA's nvml.h: what can be compared when compiling is.
#define NVML_NO_UNVERSIONED_FUNC_DEFS  // the functions of each version by their own names
#include <gtest/gtest.h>
#include <nvml.h>

#include <cstddef>
#include <tuple>
#include <type_traits>

#include "collect/machine/nvml_api.h"

namespace tidemark::nvml {
namespace {

// Types that may stand for one another in a call: numbers of one kind and size, and pointers.
template <typename Ours, typename Theirs>
constexpr bool kSameArgument = (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) ||
                               ((std::is_integral_v<Ours> ||
                                 std::is_enum_v<Ours>)&&(std::is_integral_v<Theirs> ||
                                                         std::is_enum_v<Theirs>)&&sizeof(Ours) == sizeof(Theirs));

template <typename Ours, typename Theirs>
struct SameCall : std::false_type {};
template <typename OurReturn, typename... Ours, typename TheirReturn, typename... Theirs>
struct SameCall<OurReturn (*)(Ours...), TheirReturn (*)(Theirs...)> {
  static constexpr bool all() {
    if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
      return kSameArgument<OurReturn, TheirReturn> && (kSameArgument<Ours, Theirs> && ...);
    }
    return false;
  }
  static constexpr bool value = all();
};

#define SAME_CALL(member, function) \
  static_assert(SameCall<decltype(Functions::member), decltype(&function)>::value, #function)

SAME_CALL(init, nvmlInit_v2);
SAME_CALL(shutdown, nvmlShutdown);
SAME_CALL(error_string, nvmlErrorString);
SAME_CALL(driver_version, nvmlSystemGetDriverVersion);
SAME_CALL(cuda_version, nvmlSystemGetCudaDriverVersion);
SAME_CALL(cuda_version, nvmlSystemGetCudaDriverVersion_v2);
SAME_CALL(device_count, nvmlDeviceGetCount_v2);
SAME_CALL(device_by_index, nvmlDeviceGetHandleByIndex_v2);
SAME_CALL(name, nvmlDeviceGetName);
SAME_CALL(uuid, nvmlDeviceGetUUID);
SAME_CALL(pci_info, nvmlDeviceGetPciInfo_v3);
SAME_CALL(memory, nvmlDeviceGetMemoryInfo);
SAME_CALL(memory_v2, nvmlDeviceGetMemoryInfo_v2);
SAME_CALL(utilization, nvmlDeviceGetUtilizationRates);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // since NVML 13; what replaces it is not in older drivers
SAME_CALL(temperature, nvmlDeviceGetTemperature);
#pragma GCC diagnostic pop
SAME_CALL(power, nvmlDeviceGetPowerUsage);
SAME_CALL(compute_processes, nvmlDeviceGetComputeRunningProcesses_v3);
SAME_CALL(graphics_processes, nvmlDeviceGetGraphicsRunningProcesses_v3);
SAME_CALL(mig_mode, nvmlDeviceGetMigMode);
SAME_CALL(mig_count, nvmlDeviceGetMaxMigDeviceCount);
SAME_CALL(mig_by_index, nvmlDeviceGetMigDeviceHandleByIndex);

#define SAME_FIELD(ours, our_field, theirs, their_field)                      \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) && \
                    sizeof(ours::our_field) == sizeof(theirs::their_field),   \
                #theirs "::" #their_field)

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
