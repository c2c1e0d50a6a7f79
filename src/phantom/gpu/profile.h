// The properties of the phantom GPU: the profile chosen by `tidemark plan`, read once when the library is loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tidemark::phantom {

/// One kind of GPU; sizes in bytes. All devices of a process are of this kind.
struct Profile {
  std::string name;
  int devices = 1;            ///< of the machine; a process sees visible_devices() of them
  std::uint64_t memory = 0;   ///< total memory reported by the driver
  std::uint64_t context = 0;  ///< used by the driver before the program allocates
  int major = 0;              ///< compute capability
  int minor = 0;
  int multiprocessors = 0;
  int shared_per_block = 49152;
  int shared_per_block_optin = 0;
  int shared_per_multiprocessor = 0;
  int registers_per_multiprocessor = 65536;
  int threads_per_multiprocessor = 2048;
  int blocks_per_multiprocessor = 32;
  int l2_cache = 0;
  int memory_bus_bits = 0;
  int clock_khz = 0;
  int memory_clock_khz = 0;
  int cuda_version = 0;    ///< version reported by driver and runtime: 13020 is 13.2
  int cublas_version = 0;  ///< of the libraries that the program's PyTorch was built with, in their own numbering
  int cudnn_version = 0;
  int nccl_version = 0;
  std::uint64_t nccl_first = 0;    ///< memory of NCCL with the first communicator of a process
  std::uint64_t nccl_further = 0;  ///< with each further one
  int steps = -1;                  ///< training steps to run, 0: all; below 0: do not count them
};

/// The profile of this process. Read from the file `device` in the folder $TIDEMARK_PHANTOM, a line `key value` for
/// each field. Thread-safe. Ends the process with a message if there is none, because the stand-ins need it.
[[nodiscard]] const Profile& profile();

/// The folder $TIDEMARK_PHANTOM.
[[nodiscard]] const char* phantom_folder();

/// Whether the GPU and the libraries are those whose workspaces were measured: an H200, cuDNN 9.19, and cuSOLVER and
/// cuFFT of CUDA 13.0. Otherwise the same sizes are estimates.
[[nodiscard]] bool is_measured_cudnn();
[[nodiscard]] bool is_measured_cuda_libraries();

/// Counts the program's training steps, if the profile requests it: by a PyTorch hook on all optimizers, which the main
/// thread installs before it runs another Python function; in a program without Python or without an optimizer of
/// torch.optim, by its own marks (step_names.h). Call it in each call that takes device memory, without locks; all but
/// the first cost a load.
void watch_training_steps();

}  // namespace tidemark::phantom
