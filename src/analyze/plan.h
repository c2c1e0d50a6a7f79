// Will it fit? What a dry run on a phantom GPU says of a program's memory on a real one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/common/recording.h"
#include "analyze/summary.h"

namespace tidemark {

/// The GPU that was planned for, and what is known of the run; sizes in bytes.
struct PlanFacts {
  std::string gpu;
  std::uint64_t memory_bytes = 0;              ///< of each device, as its driver reports it
  bool memory_measured = true;                 ///< on such a GPU, or given by the user; otherwise as others report it
  std::optional<std::uint64_t> context_bytes;  ///< of the driver's context; none where it was not measured for this GPU
  std::uint64_t reads = 0;                     ///< results that the program read, and no kernel had computed
  std::uint64_t cudnn_estimates = 0;           ///< operations of cuDNN whose workspace was estimated
  std::uint64_t cusolver_estimates = 0;        ///< the same of cuSOLVER
  std::uint64_t cufft_estimates = 0;           ///< the same of cuFFT
  std::uint64_t kernel_estimates = 0;          ///< kernels whose machine code for this GPU is not known
  std::vector<std::string> unanswered;         ///< functions of CUDA that the phantom GPU has no answer for
  std::string torch_version;
  std::optional<int> exit_code;  ///< of the program; none when a signal ended it
};

/// A GPU as one process used it.
struct PlannedDevice {
  RecordingInfo recording;
  SummaryDevice summary;                           ///< peaks, and the call sites that held the peak
  std::optional<std::uint64_t> device_used_bytes;  ///< peak reserved and context; none where the context is not known
  std::optional<std::uint64_t> headroom_bytes;     ///< memory less that; 0 where it does not fit
  bool fits = true;                                ///< no request failed, and what is used is within the memory
};

struct Plan {
  PlanFacts facts;
  std::vector<PlannedDevice> devices;  ///< GPUs on which a process allocated, by recording
  bool fits = true;                    ///< on all of them
};

/// Adds the GPUs of one recording. A request that failed, even one that the program survived, says that it does not
/// fit.
void add_to_plan(Plan& plan, const Summary& summary);

}  // namespace tidemark
