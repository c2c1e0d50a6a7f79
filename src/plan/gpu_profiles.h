// The GPUs that a plan can be made for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tidemark {

/// A kind of GPU; sizes in bytes. What follows from the compute capability is in limits_of().
struct GpuProfile {
  std::string_view name;           ///< as in --gpu: "H200"
  std::string_view full_name;      ///< as the driver says it: "NVIDIA H200"
  std::uint64_t memory_bytes = 0;  ///< in all, as the driver reports it; differs by driver and ECC by up to 1%
  std::optional<std::uint64_t> context_bytes;  ///< of a process with PyTorch's kernels; none where it was not measured
  int major = 0;                               ///< compute capability
  int minor = 0;
  int multiprocessors = 0;
  std::uint64_t l2_cache_bytes = 0;
  int memory_bus_bits = 0;
  bool measured = false;  ///< the total memory and the context, by us
};

/// Limits of a multiprocessor, by compute capability (CUDA C++ Programming Guide, "Technical Specifications").
struct MultiprocessorLimits {
  int shared_bytes = 0;
  int shared_bytes_per_block = 0;  ///< that a kernel can ask for
  int threads = 0;
  int blocks = 0;
};

/// In the order in which help lists them.
[[nodiscard]] std::span<const GpuProfile> gpu_profiles();

/// By its name, or by what the driver calls it, in upper or lower case. The error lists the names.
[[nodiscard]] Result<GpuProfile> find_gpu_profile(std::string_view name);

[[nodiscard]] MultiprocessorLimits limits_of(const GpuProfile& gpu);

}  // namespace tidemark
