// The environment of a program on the phantom GPU, and its activity there.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/output_file.h"
#include "base/result.h"
#include "launch/interpreter_probe.h"
#include "phantom/gpu/usage_file.h"
#include "plan/gpu_profiles.h"

namespace tidemark {

struct PhantomOptions {
  GpuProfile gpu;
  std::uint64_t memory_bytes = 0;  ///< of each device
  int devices = 1;
  std::uint64_t nccl_first_bytes = 0;    ///< of NCCL's first communicator in a process
  std::uint64_t nccl_further_bytes = 0;  ///< of each further one
  /// Training steps after which the program is ended; 0: count steps, and run to the end; nullopt: neither.
  std::optional<std::uint64_t> steps = {};
};

/// Device memory that a library took itself, without PyTorch's allocator.
struct PhantomLibrary {
  std::string name;  ///< of its file
  std::uint32_t device = 0;
  std::uint64_t peak_bytes = 0;
};

/// Activity of one process of a plan on the phantom GPU.
struct PhantomProcess {
  pid_t pid = 0;
  std::uint64_t requests = 0;         ///< for device memory
  std::uint64_t steps = 0;            ///< training steps that were complete
  bool steps_by_marks = false;        ///< the steps are marked by the program
  std::uint64_t idle_optimizers = 0;  ///< number of optimizers without a step, although they have parameters on a GPU
  std::uint32_t communicators = 0;    ///< of NCCL that it joined
  /// For each device, memory of the driver and its libraries besides the context.
  std::vector<std::uint64_t> driver_bytes = {};
  bool stopped = false;  ///< its last training step is complete, and it waits to be ended
  std::vector<PhantomLibrary> libraries = {};
};

/// Counters of a plan's processes on the phantom GPU.
struct PhantomUsage {
  std::vector<PhantomProcess> processes;
  /// For each device, the maximum that all processes held at once, with their contexts; empty if none was used.
  std::vector<std::uint64_t> device_peaks;
  std::uint64_t reads = 0;  ///< copies to the host of unknown values that may decide something
  /// Numbers of different operations with an estimated workspace, and of kernels with estimated needs.
  std::array<std::uint64_t, phantom::kEstimates> estimates{};
  std::vector<std::string> unanswered;  ///< functions of CUDA without an answer, in alphabetical order
  std::string own_runtime;              ///< path of a library with a separate CUDA runtime; empty: none
};

/// A folder with the stand-ins for one PyTorch, visible only to its processes. Removed with this object. Move-only.
class PhantomRun {
 public:
  /// Writes the stand-ins for the interpreter's PyTorch. The error is the reason why it cannot be planned with.
  static Result<PhantomRun> create(const InterpreterFacts& python, const PhantomOptions& options);

  /// May also contain files of the owner.
  [[nodiscard]] const std::string& folder() const { return folder_.path(); }
  /// Libraries to preload, in this order.
  [[nodiscard]] const std::vector<std::string>& preload() const { return preload_; }
  /// Variables ("NAME=value") that the program needs.
  [[nodiscard]] std::vector<std::string> environment() const;
  /// Usage of all processes so far.
  [[nodiscard]] PhantomUsage usage() const;

 private:
  [[nodiscard]] std::vector<std::uint64_t> device_peaks() const;
  PhantomRun(ScratchFolder folder, int devices) : folder_(std::move(folder)), devices_(devices) {}

  ScratchFolder folder_;
  int devices_;
  std::vector<std::string> preload_;
};

/// Profile of the first GPU that the driver lists, which CUDA_VISIBLE_DEVICES may select. Creates no context: runs
/// nothing on the GPU, and takes no memory of it.
[[nodiscard]] Result<GpuProfile> profile_of_this_machine();

}  // namespace tidemark
