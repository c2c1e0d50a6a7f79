// Data that a planned process writes for the plan: a file of fixed size in the phantom's folder, mapped by the process,
// so that it is complete up to the process's end.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "phantom/gpu/address_space.h"

namespace tidemark::phantom {

/// The kind of an estimate.
enum class Estimate : std::uint8_t { cudnn_workspace, cusolver_workspace, cufft_workspace, cusparse_workspace, kernel };
inline constexpr std::size_t kEstimates = 5;

/// Device memory that a library took itself, without PyTorch's allocator.
struct LibraryMemory {
  char name[60];                     ///< of its file, zero-terminated; empty: the place is free
  std::int32_t device;               ///< number in the machine
  std::atomic<std::uint64_t> bytes;  ///< current
  std::atomic<std::uint64_t> peak_bytes;
};

/// The file `usage.PID`. All counts start at 0.
struct UsageFile {
  static constexpr std::uint32_t kMagic = 0x55746d34;
  static constexpr std::size_t kNameBytes = 60;
  static constexpr std::size_t kMaxNames = 256;
  static constexpr std::size_t kMaxLibraries = 32;

  std::uint32_t magic;
  std::atomic<std::uint32_t> unanswered;             ///< functions in `names`, at most kMaxNames
  std::atomic<std::uint64_t> reads;                  ///< copies to the host of unknown values that may decide something
  std::atomic<std::uint64_t> estimates[kEstimates];  ///< by Estimate: different operations or kernels
  std::atomic<std::uint64_t> requests;               ///< for device memory
  std::atomic<std::uint64_t> steps;                  ///< completed training steps
  std::atomic<std::uint64_t> idle_optimizers;  ///< optimizers without a step although they have parameters of their own
                                               ///< on a GPU
  std::atomic<std::uint32_t> stopped;          ///< 1: the last training step is complete, the process waits for its end
  std::atomic<std::uint32_t> communicators;    ///< NCCL communicators that the process joined
  std::atomic<std::uint64_t> driver_bytes[kMaximumDevices];  ///< for each device, taken by the driver and its libraries
  std::atomic<std::uint32_t> steps_by_marks;                 ///< 1: the program's own marks determine the steps
  char names[kMaxNames][kNameBytes];  ///< functions without an implementation, each once; zero-terminated
  LibraryMemory libraries[kMaxLibraries];
  char own_runtime[256];  ///< path of a library that has its own CUDA runtime, zero-terminated; or empty
};

}  // namespace tidemark::phantom
