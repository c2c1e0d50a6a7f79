// This project's occupancy compared with NVIDIA's (cuda_occupancy.h).
#include <cuda_occupancy.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>

#include "phantom/gpu/kernels.h"

namespace tidemark::phantom {
namespace {

/// Limits of the GPUs of a compute capability, from the CUDA C++ Programming Guide.
struct Limits {
  int major;
  int minor;
  int threads;
  int blocks;
  int shared;        // of a multiprocessor
  int shared_block;  // most of a block
};
constexpr Limits kLimits[] = {
    {7, 0, 2048, 32, 98304, 98304},    {7, 5, 1024, 16, 65536, 65536},    {8, 0, 2048, 32, 167936, 166912},
    {8, 6, 1536, 16, 102400, 101376},  {8, 9, 1536, 24, 102400, 101376},  {9, 0, 2048, 32, 233472, 232448},
    {10, 0, 2048, 32, 233472, 232448}, {10, 3, 2048, 32, 233472, 232448}, {12, 0, 1536, 24, 102400, 101376},
};

class OccupancyOfNvidia : public ::testing::TestWithParam<Limits> {
 protected:
  static cudaOccDeviceProp device_properties() {
    const Limits& limits = GetParam();
    cudaOccDeviceProp device{};
    device.computeMajor = limits.major;
    device.computeMinor = limits.minor;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = limits.threads;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.warpSize = 32;
    device.sharedMemPerBlock = 49152;
    device.sharedMemPerMultiprocessor = static_cast<std::size_t>(limits.shared);
    device.numSms = 1;
    device.sharedMemPerBlockOptin = static_cast<std::size_t>(limits.shared_block);
    device.reservedSharedMemPerBlock = limits.major >= 8 ? 1024 : 0;
    return device;
  }

  static cudaOccFuncAttributes function_attributes(const KernelNeeds& kernel) {
    cudaOccFuncAttributes function{};
    function.maxThreadsPerBlock = 1024;
    function.numRegs = kernel.registers;
    function.sharedSizeBytes = kernel.shared_bytes;
    function.partitionedGCConfig = PARTITIONED_GC_OFF;
    function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    function.maxDynamicSharedSizeBytes = static_cast<std::size_t>(GetParam().shared_block) - kernel.shared_bytes;
    function.numBlockBarriers = kernel.barriers;
    return function;
  }

  static Profile profile() {
    const Limits& limits = GetParam();
    Profile gpu;
    gpu.major = limits.major;
    gpu.minor = limits.minor;
    gpu.threads_per_multiprocessor = limits.threads;
    gpu.blocks_per_multiprocessor = limits.blocks;
    gpu.shared_per_multiprocessor = limits.shared;
    return gpu;
  }

  /// std::nullopt if the header is older than the GPU.
  static std::optional<int> blocks(const KernelNeeds& kernel, int threads, std::size_t shared) {
    const cudaOccDeviceProp device = device_properties();
    const cudaOccFuncAttributes function = function_attributes(kernel);
    const cudaOccDeviceState state{};
    cudaOccResult result{};
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, threads, shared) !=
        CUDA_OCC_SUCCESS)
      return std::nullopt;
    return result.activeBlocksPerMultiprocessor;
  }

  /// std::nullopt if this many blocks do not fit.
  static std::optional<std::size_t> dynamic_shared(const KernelNeeds& kernel, int blocks, int threads) {
    const cudaOccDeviceProp device = device_properties();
    const cudaOccFuncAttributes function = function_attributes(kernel);
    cudaOccDeviceState state{};
    state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
    std::size_t bytes = 0;
    if (cudaOccAvailableDynamicSMemPerBlock(&bytes, &device, &function, &state, blocks, threads) != CUDA_OCC_SUCCESS)
      return std::nullopt;
    return bytes;
  }
};

TEST_P(OccupancyOfNvidia, EqualsOccupancyHeader) {
  if (!blocks({}, 32, 0)) GTEST_SKIP() << "cuda_occupancy.h does not know this GPU";
  const Profile gpu = profile();
  for (const int registers : {1, 16, 32, 33, 40, 63, 64, 65, 72, 96, 127, 128, 168, 200, 255})
    for (const int threads : {1, 32, 33, 64, 96, 128, 224, 256, 384, 512, 640, 768, 1000, 1024})
      for (const int barriers : {0, 1, 2, 3, 7, 16})
        for (const std::size_t fixed : std::initializer_list<std::size_t>{0, 300, 8192, 33808})
          for (const std::size_t shared : std::initializer_list<std::size_t>{0, 1, 4096, 7000, 16384, 30000}) {
            const KernelNeeds kernel{.registers = registers, .barriers = barriers, .shared_bytes = fixed};
            ASSERT_EQ(blocks_per_multiprocessor(gpu, kernel, threads, shared), blocks(kernel, threads, shared))
                << registers << " registers, " << threads << " threads, " << barriers << " barriers, " << fixed << " + "
                << shared << " bytes";
          }
}

TEST_P(OccupancyOfNvidia, SharedMemoryThatBlocksCanHave) {
  if (!blocks({}, 32, 0)) GTEST_SKIP() << "cuda_occupancy.h does not know this GPU";
  for (const int registers : {32, 128})
    for (const int threads : {32, 256, 1024})
      for (const std::size_t fixed : std::initializer_list<std::size_t>{0, 300, 8192, 33808})
        for (const int wanted : {1, 2, 3, 5, 16, 32}) {
          const KernelNeeds kernel{.registers = registers, .shared_bytes = fixed};
          ASSERT_EQ(available_dynamic_shared(profile(), kernel, wanted, threads),
                    dynamic_shared(kernel, wanted, threads))
              << registers << " registers, " << threads << " threads, " << fixed << " bytes, " << wanted << " blocks";
        }
}

INSTANTIATE_TEST_SUITE_P(ComputeCapabilities, OccupancyOfNvidia, ::testing::ValuesIn(kLimits),
                         [](const auto& capability) {
                           return std::to_string(capability.param.major) + "_" + std::to_string(capability.param.minor);
                         });

}  // namespace
}  // namespace tidemark::phantom
