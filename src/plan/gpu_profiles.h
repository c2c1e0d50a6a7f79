// The GPUs that can be planned for: known ones, this machine's, and GPUs that a user describes in a file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tidemark {

/// Limits of a multiprocessor.
struct MultiprocessorLimits {
  int shared_bytes = 0;
  int shared_bytes_per_block = 0;  ///< maximum for a kernel
  int threads = 0;
  int blocks = 0;
};

/// Memory of a process with PyTorch 2.11 before its first tensor, with driver 580, in bytes. Most of it is room for the
/// stacks of all threads that the multiprocessors run, so smaller GPUs need less.
inline constexpr std::uint64_t kContextOfH200 = 648'871'936;

/// A kind of GPU; sizes in bytes.
struct GpuProfile {
  std::string name;                ///< as in --gpu: "H200"
  std::string full_name;           ///< the driver's name: "NVIDIA H200"
  std::uint64_t memory_bytes = 0;  ///< in all, as the driver reports it; differs by driver and ECC by up to 1%
  std::uint64_t context_bytes = kContextOfH200;  ///< of a process with PyTorch's kernels
  bool context_measured = false;                 ///< on such a GPU; otherwise an H200's, as an estimate
  int major = 0;                                 ///< compute capability
  int minor = 0;
  int multiprocessors = 0;
  MultiprocessorLimits limits;
  std::uint64_t l2_cache_bytes = 0;
  int memory_bus_bits = 0;
  bool measured = false;  ///< the total memory, on such a GPU; otherwise as others report it
};

/// The known GPUs, in the order of help.
[[nodiscard]] std::span<const GpuProfile> gpu_profiles();

/// Finds a GPU by its name or the driver's name for it, in upper or lower case, with or without spaces and dashes, or
/// by a part that no other GPU's name has ("3090"); "auto": the first GPU of this machine; a name with a dot or a
/// slash: a file that describes the GPU. The error lists the matching GPUs, or the problem of the file.
[[nodiscard]] Result<GpuProfile> find_gpu_profile(std::string_view name);

/// The limits of a compute capability (CUDA C++ Programming Guide, "Technical Specifications"; the same as
/// cuda::arch_traits in NVIDIA's CCCL). nullopt for an unknown one.
[[nodiscard]] std::optional<MultiprocessorLimits> limits_of(int major, int minor);

/// Whether NVIDIA's driver is loaded on this machine.
[[nodiscard]] bool has_nvidia_driver();

/// Makes the kernel permanently refuse NVIDIA's driver to this thread and all its children: requests to it fail with
/// ENODEV. Set-user-ID programs gain no rights any more. Does nothing if the kernel has no seccomp filters. Only makes
/// system calls, so it may be called between fork and exec.
void refuse_nvidia_driver();

/// Parses the profiles of a text; one without a [NAME] is named after `origin`, without folder and extension. The error
/// names `origin`, the line, and the expected text.
[[nodiscard]] Result<std::vector<GpuProfile>> parse_gpu_profiles(std::string_view text, const std::string& origin);

/// A text that parses to the same profile, but for whether it was measured.
[[nodiscard]] std::string gpu_profile_text(const GpuProfile& gpu);

/// The text of the known GPUs.
[[nodiscard]] std::string_view known_gpus_text();

}  // namespace tidemark
