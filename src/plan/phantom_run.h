// What a program needs in its environment to run on the phantom GPU, and what it did there.
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
  /// Training steps after which the program is ended; 0: they are counted, and it runs to its end; none: neither.
  std::optional<std::uint64_t> steps = {};
};

/// Device memory that a library took itself, without PyTorch's allocator.
struct PhantomLibrary {
  std::string name;  ///< of its file
  std::uint32_t device = 0;
  std::uint64_t peak_bytes = 0;
};

/// What one process of a plan did on the phantom GPU.
struct PhantomProcess {
  pid_t pid = 0;
  std::uint64_t requests = 0;         ///< for device memory
  std::uint64_t steps = 0;            ///< training steps that were complete
  bool steps_by_marks = false;        ///< they are those that the program marks itself
  std::uint64_t idle_optimizers = 0;  ///< that made no step though they have parameters of their own on a GPU
  std::uint32_t communicators = 0;    ///< of NCCL that it joined
  /// Of each device, what the driver and its libraries took beside the context.
  std::vector<std::uint64_t> driver_bytes = {};
  bool stopped = false;  ///< its last training step is complete, and it waits to be ended
  std::vector<PhantomLibrary> libraries = {};
};

/// What the processes of a plan counted on the phantom GPU.
struct PhantomUsage {
  std::vector<PhantomProcess> processes;
  /// Of each device, the most that all processes held at once, with their contexts; empty where none was used.
  std::vector<std::uint64_t> device_peaks;
  std::uint64_t reads = 0;  ///< copies from a device to the host, whose values no kernel computed
  /// Different operations whose workspace, and kernels whose needs, were estimated.
  std::array<std::uint64_t, phantom::kEstimates> estimates{};
  std::vector<std::string> unanswered;  ///< functions of CUDA without an answer, in alphabetical order
  std::string own_runtime;              ///< path of a library that has a CUDA runtime of its own; empty: none
};

/// A folder with the stand-ins for one PyTorch, which its processes alone find. Removed with this object. Move-only.
class PhantomRun {
 public:
  /// Writes the stand-ins for the interpreter's PyTorch. An error says what of it cannot be planned with.
  static Result<PhantomRun> create(const InterpreterFacts& python, const PhantomOptions& options);

  /// For files of whoever made it, too.
  [[nodiscard]] const std::string& folder() const { return folder_.path(); }
  /// Libraries to preload, in this order.
  [[nodiscard]] const std::vector<std::string>& preload() const { return preload_; }
  /// Variables ("NAME=value") that the program needs.
  [[nodiscard]] std::vector<std::string> environment() const;
  /// Of all processes so far.
  [[nodiscard]] PhantomUsage usage() const;

 private:
  [[nodiscard]] std::vector<std::uint64_t> device_peaks() const;
  PhantomRun(ScratchFolder folder, int devices) : folder_(std::move(folder)), devices_(devices) {}

  ScratchFolder folder_;
  int devices_;
  std::vector<std::string> preload_;
};

/// Of the first GPU that the driver lists, which CUDA_VISIBLE_DEVICES may choose. Creates no context: nothing runs on
/// the GPU, and no memory of it is taken.
[[nodiscard]] Result<GpuProfile> profile_of_this_machine();

}  // namespace tidemark
