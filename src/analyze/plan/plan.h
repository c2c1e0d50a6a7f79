// Will it fit? What a dry run on a phantom GPU says of a program's memory on a real one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/common/recording_info.h"
#include "analyze/usage/summary.h"
#include "trace/sample.h"

namespace tidemark {

/// What NCCL takes on a device, in bytes.
struct NcclMemory {
  std::uint64_t first = 0;    ///< with the first communicator of a process: its buffers and NCCL's kernels
  std::uint64_t further = 0;  ///< with each further one
};

/// Device memory that a library took itself, without PyTorch's allocator.
struct PlannedLibrary {
  std::string name;       ///< of its file
  std::uint32_t gpu = 0;  ///< number among the planned GPUs
  std::uint64_t peak_bytes = 0;
};

/// What a process of the program did besides allocating.
struct PlannedProcess {
  std::int64_t pid = 0;
  std::uint64_t steps = 0;          ///< training steps that were complete
  std::uint32_t communicators = 0;  ///< of NCCL
  /// Of each planned GPU, what cuBLAS, cuDNN and the code of kernels took beside the context, an estimate.
  std::vector<std::uint64_t> driver_bytes = {};
  bool steps_by_marks = false;  ///< the steps are those that the program marks itself
  std::vector<PlannedLibrary> libraries = {};
};

/// The GPU that was planned for, and what is known of the run; sizes in bytes.
struct PlanFacts {
  std::string gpu;
  std::uint64_t memory_bytes = 0;        ///< of each device, as its driver reports it
  bool memory_measured = true;           ///< on such a GPU, or given by the user; otherwise as others report it
  std::uint64_t context_bytes = 0;       ///< of the driver's context, an estimate
  bool context_measured = false;         ///< on such a GPU; otherwise on another one
  std::optional<NcclMemory> nccl;        ///< of a process; none where it is not known
  std::uint64_t reads = 0;               ///< results that the program read, and no kernel had computed
  std::uint64_t cudnn_estimates = 0;     ///< operations of cuDNN whose workspace was estimated
  std::uint64_t cusolver_estimates = 0;  ///< the same of cuSOLVER
  std::uint64_t cufft_estimates = 0;     ///< the same of cuFFT
  std::uint64_t kernel_estimates = 0;    ///< kernels whose machine code for this GPU is not known
  std::uint64_t idle_optimizers = 0;     ///< that made no step though they have parameters of their own on a GPU
  std::vector<std::string> unanswered;   ///< functions of CUDA that the phantom GPU has no answer for
  std::vector<PlannedProcess> processes;
  /// Of each planned GPU, the most that all processes held at once, with their contexts and what libraries took; empty
  /// where it is not known.
  std::vector<std::uint64_t> device_peaks;
  std::string torch_version;
  std::optional<int> exit_code;  ///< of the program; none when a signal ended it, or the plan after its last step
  bool stopped = false;          ///< the plan ended the program after the last training step that was asked for
  bool interrupted = false;      ///< the user ended it
};

/// A GPU as one process used it.
struct PlannedDevice {
  RecordingInfo recording;
  SummaryDevice summary;                  ///< peaks, and the call sites that held the peak
  std::uint64_t steps = 0;                ///< training steps of the process
  std::uint32_t gpu = 0;                  ///< number among the planned GPUs; processes may call it differently
  std::size_t process_count = 1;          ///< of the plan on this GPU
  std::uint64_t nccl_bytes = 0;           ///< estimate for the process's communicators; 0 also where it is not known
  std::uint64_t driver_bytes = 0;         ///< estimate for cuBLAS, cuDNN and the code of kernels
  std::vector<PlannedLibrary> libraries;  ///< what took memory of this GPU besides PyTorch's allocator, in the process
  /// What all processes of the GPU held at once at most, and NCCL. Where that is not known, the sum of peak reserved,
  /// context, driver_bytes and NCCL of each.
  std::uint64_t device_used_bytes = 0;
  std::uint64_t headroom_bytes = 0;  ///< memory less that; 0 where it does not fit
  bool fits = true;                  ///< no request failed, and what is used is within the memory
};

/// A change of the program's command that makes it fit, found by planning the program with it.
struct PlannedChange {
  std::string change;        ///< "--batch-size 4", "8 GPUs (--nproc 8)"
  std::uint64_t bytes = 0;   ///< of each GPU that the program needs with it
  bool checkpoints = false;  ///< activations
};

/// What a program that does not fit needs of each GPU.
struct PlanNeed {
  std::uint64_t bytes = 0;             ///< with the context and libraries, by a plan without a limit
  std::vector<std::string> enough;     ///< known GPUs with so much memory, least first
  std::string too_small;               ///< the known GPU with most memory that has less; empty if there is none
  std::vector<PlannedChange> changes;  ///< each enough by itself
  std::vector<Advice> advice;          ///< changes of the program that save enough by themselves, most first
};

struct Plan {
  PlanFacts facts;
  std::vector<PlannedDevice> devices;  ///< GPUs on which a process allocated, those with least headroom first
  std::uint64_t pinned_bytes = 0;      ///< page-locked memory of the host: the sum of all processes' peaks
  std::uint64_t steps = 0;             ///< training steps that all ranks made
  bool steps_by_marks = false;         ///< they are those that the program marks itself
  bool fits = true;                    ///< on all of them
  std::optional<PlanNeed> need = {};   ///< none where it fits, or was not asked
};

/// What of a recording a plan is made of.
struct PlannedRecording {
  Summary summary;
  std::vector<SampledDevice> devices;  ///< that it names
};

/// A request that failed, even one that the program survived, says that it does not fit.
[[nodiscard]] Plan make_plan(PlanFacts facts, const std::vector<PlannedRecording>& recordings);

/// Reserved by the process at its peak, or allocated where the allocator does not report it.
[[nodiscard]] std::uint64_t peak_reserved_bytes(const PlannedDevice& device);

}  // namespace tidemark
