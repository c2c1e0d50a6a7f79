// The GPUs that a plan can be made for: those that are known, this machine's, and what a user describes in a file.
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
  int shared_bytes_per_block = 0;  ///< that a kernel can ask for
  int threads = 0;
  int blocks = 0;
};

/// What a process with PyTorch 2.11 took before its first tensor, with driver 580, in bytes. Most of it is room for the
/// stacks of all threads that the multiprocessors run, so smaller GPUs need less.
inline constexpr std::uint64_t kContextOfH200 = 648'871'936;

/// A kind of GPU; sizes in bytes.
struct GpuProfile {
  std::string name;                ///< as in --gpu: "H200"
  std::string full_name;           ///< as the driver says it: "NVIDIA H200"
  std::uint64_t memory_bytes = 0;  ///< in all, as the driver reports it; differs by driver and ECC by up to 1%
  std::uint64_t context_bytes = kContextOfH200;  ///< of a process with PyTorch's kernels
  bool context_measured = false;                 ///< on such a GPU; otherwise that of an H200, as an estimate
  int major = 0;                                 ///< compute capability
  int minor = 0;
  int multiprocessors = 0;
  MultiprocessorLimits limits;
  std::uint64_t l2_cache_bytes = 0;
  int memory_bus_bits = 0;
  bool measured = false;  ///< the total memory, on such a GPU; otherwise as others report it
};

/// Those that are known, in the order in which help lists them.
[[nodiscard]] std::span<const GpuProfile> gpu_profiles();

/// By its name or the driver's name for it, in upper or lower case, with or without spaces and dashes, or by a part of
/// it that no other GPU's name has ("3090"); "auto": the first GPU of this machine; a name with a dot or a slash: the
/// GPU that this file describes. The error lists the GPUs that a name could mean, or says what is wrong with the file.
[[nodiscard]] Result<GpuProfile> find_gpu_profile(std::string_view name);

/// The limits of a compute capability (CUDA C++ Programming Guide, "Technical Specifications"; the same as
/// cuda::arch_traits in NVIDIA's CCCL). None of one that is not known.
[[nodiscard]] std::optional<MultiprocessorLimits> limits_of(int major, int minor);

/// Whether NVIDIA's driver is loaded on this machine.
[[nodiscard]] bool has_nvidia_driver();

/// Has the kernel refuse NVIDIA's driver to this thread and to whatever it starts, for good: requests to it fail with
/// ENODEV. Set-user-ID programs gain no rights any more. Does nothing where the kernel has no seccomp filters. Makes
/// system calls only, so it may be called between fork and exec.
void refuse_nvidia_driver();

/// The profiles of a text; one without a [NAME] is called what `origin` is called, without folder and ending. The error
/// names `origin`, the line, and what to write there.
[[nodiscard]] Result<std::vector<GpuProfile>> parse_gpu_profiles(std::string_view text, const std::string& origin);

/// A text that parses to the same profile, but for whether it was measured.
[[nodiscard]] std::string gpu_profile_text(const GpuProfile& gpu);

/// The text of those that are known.
[[nodiscard]] std::string_view known_gpus_text();

}  // namespace tidemark
