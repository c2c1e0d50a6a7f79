// What a planned process writes for the plan: a file of fixed size in the phantom's folder, mapped by the process, so
// that it holds whatever the process did until its end.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "phantom/gpu/address_space.h"

namespace tidemark::phantom {

/// What was estimated.
enum class Estimate : std::uint8_t { cudnn_workspace, cusolver_workspace, cufft_workspace, kernel };
inline constexpr std::size_t kEstimates = 4;

/// The file `usage.PID`. All counts start at 0.
struct UsageFile {
  static constexpr std::uint32_t kMagic = 0x55746d33;
  static constexpr std::size_t kNameBytes = 60;
  static constexpr std::size_t kMostNames = 256;

  std::uint32_t magic;
  std::atomic<std::uint32_t> unanswered;             ///< functions in `names`, at most kMostNames
  std::atomic<std::uint64_t> reads;                  ///< copies from a device to the host
  std::atomic<std::uint64_t> estimates[kEstimates];  ///< by Estimate: different operations or kernels
  std::atomic<std::uint64_t> requests;               ///< for device memory
  std::atomic<std::uint64_t> steps;                  ///< training steps that were complete
  std::atomic<std::uint64_t> idle_optimizers;  ///< that made no step though they have parameters of their own on a GPU
  std::atomic<std::uint32_t> stopped;          ///< 1: the last training step is complete, the process waits for its end
  std::atomic<std::uint32_t> communicators;    ///< of NCCL that the process joined
  std::atomic<std::uint64_t> driver_bytes[kMaximumDevices];  ///< of each device, taken by the driver and its libraries
  char names[kMostNames][kNameBytes];  ///< functions without an answer, each once; ends in a zero byte
};

}  // namespace tidemark::phantom
