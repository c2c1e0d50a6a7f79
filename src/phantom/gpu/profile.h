// What the phantom GPU says that it is: the profile that `tidemark plan` chose, read once when the library is loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tidemark::phantom {

/// One kind of GPU; sizes in bytes. All devices of a process are of this kind.
struct Profile {
  std::string name;
  int devices = 1;            ///< of the machine; a process sees visible_devices() of them
  std::uint64_t memory = 0;   ///< what the driver reports as total
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
  int cuda_version = 0;    ///< what driver and runtime say: 13020 is 13.2
  int cublas_version = 0;  ///< of the libraries that the program's PyTorch was built with, as they number themselves
  int cudnn_version = 0;
  int nccl_version = 0;
  int steps = -1;  ///< training steps to run, 0: all; below 0: they are not counted
};

/// The profile of this process. Read from the file `device` in the folder that TIDEMARK_PHANTOM names, a line `key
/// value` for each field. Thread-safe. Ends the process with a message when there is none: the stand-ins are of no use
/// without it.
[[nodiscard]] const Profile& profile();

/// The folder that TIDEMARK_PHANTOM names.
[[nodiscard]] const char* phantom_folder();

/// Whether the process has the GPU and the libraries whose workspaces were measured: an H200, cuDNN 9.19, and
/// cuSOLVER and cuFFT of CUDA 13.0. Elsewhere the same sizes are estimates.
[[nodiscard]] bool is_measured_cudnn();
[[nodiscard]] bool is_measured_cuda_libraries();

/// Has the program's training steps counted, where the profile asks for it: by a hook of PyTorch's on all optimizers,
/// which the main thread sets before it runs another function of Python's; in a program without Python or without an
/// optimizer of torch.optim, by its own marks (step_names.h). To be called by each call that takes device memory,
/// without locks; all but the first cost a load.
void watch_training_steps();

}  // namespace tidemark::phantom
