// What a program needs in its environment to run on the phantom GPU, and what it did there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/interpreter_probe.h"
#include "plan/gpu_profiles.h"

namespace tidemark {

struct PhantomOptions {
  GpuProfile gpu;
  std::uint64_t memory_bytes = 0;  ///< of each device
  int devices = 1;
};

/// What the processes of a plan counted on the phantom GPU.
struct PhantomUsage {
  std::uint64_t reads = 0;              ///< copies from a device to the host, whose values no kernel computed
  std::uint64_t estimates = 0;          ///< workspaces whose size was estimated
  std::vector<std::string> unanswered;  ///< functions of CUDA without an answer, in alphabetical order
};

/// A folder with the stand-ins for one PyTorch, which its processes alone find. Removed with this object. Move-only.
class PhantomRun {
 public:
  /// Writes the stand-ins for the interpreter's PyTorch. An error says what of it cannot be planned with.
  static Result<PhantomRun> create(const InterpreterFacts& python, const PhantomOptions& options);
  PhantomRun(PhantomRun&& other) noexcept;
  PhantomRun(const PhantomRun&) = delete;
  PhantomRun& operator=(const PhantomRun&) = delete;
  PhantomRun& operator=(PhantomRun&&) = delete;
  ~PhantomRun();

  /// For files of whoever made it, too.
  [[nodiscard]] const std::string& folder() const { return folder_; }
  /// Libraries to preload, in this order.
  [[nodiscard]] const std::vector<std::string>& preload() const { return preload_; }
  /// Variables ("NAME=value") that the program needs.
  [[nodiscard]] std::vector<std::string> environment() const;
  /// Of all processes so far.
  [[nodiscard]] PhantomUsage usage() const;

 private:
  explicit PhantomRun(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;  // empty once it was moved from
  std::vector<std::string> preload_;
};

}  // namespace tidemark
