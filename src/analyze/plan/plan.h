// Whether a program fits on a GPU, from a dry run on a phantom GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyze/common/recording_info.h"
#include "analyze/leaks/leaks.h"
#include "analyze/usage/summary.h"
#include "trace/sample.h"

namespace tidemark {

/// Memory of NCCL on a device, in bytes.
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

/// Facts about a process of the program, besides its allocations.
struct PlannedProcess {
  std::int64_t pid = 0;
  std::uint64_t steps = 0;          ///< training steps that were complete
  std::uint32_t communicators = 0;  ///< of NCCL
  /// For each planned GPU, estimated memory of cuBLAS, cuDNN and kernel code, besides the context.
  std::vector<std::uint64_t> driver_bytes = {};
  bool steps_by_marks = false;  ///< the steps are marked by the program
  std::vector<PlannedLibrary> libraries = {};
};

/// The planned GPU and facts about the run; sizes in bytes.
struct PlanFacts {
  std::string gpu;
  std::uint64_t memory_bytes = 0;        ///< of each device, as its driver reports it
  std::uint64_t own_memory_bytes = 0;    ///< what a GPU of this name has; memory_bytes may be another figure
  bool memory_measured = true;           ///< on such a GPU, or given by the user; otherwise as others report it
  std::uint64_t context_bytes = 0;       ///< of the driver's context, an estimate
  bool context_measured = false;         ///< on such a GPU; otherwise on another one
  std::optional<NcclMemory> nccl;        ///< of a process; nullopt if unknown
  std::uint64_t reads = 0;               ///< number of results that the program read although their values are unknown
  std::uint64_t cudnn_estimates = 0;     ///< number of cuDNN operations with an estimated workspace
  std::uint64_t cusolver_estimates = 0;  ///< the same of cuSOLVER
  std::uint64_t cufft_estimates = 0;     ///< the same of cuFFT
  std::uint64_t cusparse_estimates = 0;  ///< the same of cuSPARSE, and results of unknown size
  std::uint64_t kernel_estimates = 0;    ///< number of kernels without known machine code for this GPU
  std::uint64_t idle_optimizers = 0;     ///< number of optimizers without a step, although they have parameters on a
                                         ///< GPU
  std::vector<std::string> unanswered;   ///< functions of CUDA that the phantom GPU has no answer for
  std::vector<PlannedProcess> processes;
  /// For each planned GPU, the maximum that all processes held at once, with their contexts and libraries; empty if
  /// unknown.
  std::vector<std::uint64_t> device_peaks;
  std::string torch_version;
  std::optional<int> exit_code;  ///< of the program; nullopt if a signal ended it, or the plan ended it after its last
                                 ///< step
  bool stopped = false;          ///< the plan ended the program after the requested number of training steps
  bool interrupted = false;      ///< the user ended it
};

/// A GPU as one process used it.
struct PlannedDevice {
  RecordingInfo recording;
  std::shared_ptr<const Leaks> leaks;     ///< of the process; null: none found
  SummaryDevice summary;                  ///< peaks, and the call sites that held the peak
  std::uint64_t steps = 0;                ///< training steps of the process
  std::uint32_t gpu = 0;                  ///< number among the planned GPUs; processes may call it differently
  std::size_t process_count = 1;          ///< of the plan on this GPU
  std::uint64_t nccl_bytes = 0;           ///< estimate for the process's communicators; 0 also if unknown
  std::uint64_t driver_bytes = 0;         ///< estimate for cuBLAS, cuDNN and the code of kernels
  std::vector<PlannedLibrary> libraries;  ///< memory of this GPU besides PyTorch's allocator, in this process
  /// Maximum that all processes of the GPU held at once. If unknown, the sum of peak reserved, context,
  /// driver_bytes and NCCL of each.
  std::uint64_t device_used_bytes = 0;
  std::uint64_t headroom_bytes = 0;  ///< memory minus device_used_bytes; 0 if it does not fit
  bool fits = true;                  ///< no request failed, and the used memory is within the GPU's
};

/// Maximum number of devices, and of ranks, of a plan.
inline constexpr std::uint64_t kMaxPlannedDevices = 64;

/// A change of the program's command that makes it fit, found by planning the program with it.
struct PlannedChange {
  std::string change;        ///< "--batch-size 4", "8 GPUs (--nproc 8)"
  std::uint64_t bytes = 0;   ///< of each GPU that the program needs with it
  bool checkpoints = false;  ///< activations
};

/// What a program that does not fit needs of each GPU.
struct PlanNeed {
  /// With the context and libraries, by a plan without a limit, or for the smallest planned GPU on which it fits.
  std::uint64_t bytes = 0;
  std::vector<std::string> enough;     ///< known GPUs with so much memory, least first
  std::string too_small;               ///< the largest known GPU on which it does not fit; empty: unknown
  std::vector<PlannedChange> changes;  ///< each enough by itself
  std::vector<Advice> advice;          ///< changes of the program that save enough by themselves, most first
  /// Part of the batch that is estimated to fit, from 0 to 1, if activations, inputs and temporary tensors are in
  /// proportion to the batch and all else is constant. std::nullopt if unknown, or if all else does not fit.
  std::optional<double> batch_share = {};
  /// Maximum of parameters, gradients and optimizer states on the GPU with the least headroom.
  std::uint64_t model_bytes = 0;
};

struct Plan {
  PlanFacts facts;
  std::vector<PlannedDevice> devices;  ///< GPUs on which a process allocated, least headroom first
  std::uint64_t pinned_bytes = 0;      ///< page-locked memory of the host: the sum of all processes' peaks
  std::uint64_t steps = 0;             ///< training steps that all ranks made
  bool steps_by_marks = false;         ///< the steps are marked by the program
  bool fits = true;                    ///< on all of them
  std::optional<PlanNeed> need = {};   ///< nullopt if it fits, or was not requested
};

/// Input of a plan from one recording.
struct PlannedRecording {
  Summary summary;
  std::vector<SampledDevice> devices;  ///< sampled devices of the recording
};

/// A failed request means that the program does not fit, even if the program survived it.
[[nodiscard]] Plan make_plan(PlanFacts facts, const std::vector<PlannedRecording>& recordings);

/// Peak reserved by the process, or peak allocated if the allocator does not report it.
[[nodiscard]] std::uint64_t peak_reserved_bytes(const PlannedDevice& device);

}  // namespace tidemark
