// Checks what can be recorded on this machine and in this environment. query/words/machine.h puts the facts into words.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "collect/machine/inventory.h"
#include "launch/interpreter_probe.h"

namespace tidemark {

/// The result of a check. In brackets: the content of Check::subject, or Check::number if it is a number.
enum class Finding : std::uint8_t {
  // driver
  driver_works,   ///< [version]
  driver_failed,  ///< [what is wrong; what to do]
  driver_absent,
  // gpu, visible_devices
  gpu_works,
  gpu_memory_unknown,  ///< the driver does not report how much memory is used
  gpu_failed,          ///< [what is wrong; what to do]
  gpu_absent,          ///< there is a driver, without a GPU for this process
  gpus_hidden,         ///< [what CUDA_VISIBLE_DEVICES does; what to do]
  // python
  interpreter_works,
  interpreter_not_found,  ///< [program]: not in PATH, or neither Python nor a script for it
  interpreter_failed,     ///< [error]
  // python_stacks, for the interpreter in Diagnosis::python
  stacks_supported,
  stacks_not_cpython,
  stacks_free_threaded,
  stacks_debug_build,
  stacks_unknown_version,
  // torch, torch_cuda, for the same interpreter
  torch_supported,
  torch_absent,
  torch_too_old,
  torch_untested,      ///< newer than the tested versions
  torch_without_cuda,  ///< on a machine with an NVIDIA GPU
  torch_cuda_too_new,  ///< for the driver; [its version], number: major version of CUDA that it supports
  // cupti
  cupti_found,  ///< [path]
  cupti_missing,
  cupti_not_needed,  ///< not found, without an NVIDIA GPU
  // injection
  injection_none,
  injection_found,  ///< [NAME=value ...]
  // preload_library, ld_preload
  preload_library_found,    ///< [path]
  preload_library_missing,  ///< [error]
  ld_preload_unset,
  ld_preload_compatible,  ///< [its value]
  ld_preload_profiler,    ///< [its value]: it contains another memory profiler
  // host_memory, oom_kills
  memory_free,         ///< Inventory::host and ::cgroup
  memory_nearly_full,  ///< nine tenths of the control group's limit are in use
  oom_kills,           ///< [number of processes]
  // memfd
  memfd_works,
  memfd_failed,  ///< [error]
  // socket
  socket_folder_found,  ///< [path]
  socket_folder_missing,
  // permissions
  permissions_granted,
  pidfd_unavailable,
  pss_unavailable,
  // space
  space_free,        ///< [bytes]
  space_low,         ///< [bytes]
  space_unwritable,  ///< [error]
};

enum class CheckStatus : std::uint8_t { ok, warning, problem };
/// Stable names for machines.
inline constexpr EnumName<CheckStatus> kCheckStatusNames[] = {
    {CheckStatus::ok, "ok"},
    {CheckStatus::warning, "warning"},
    {CheckStatus::problem, "problem"},
};
[[nodiscard]] constexpr std::string_view name_of(CheckStatus value) {
  return name_in(kCheckStatusNames, value);
}

struct Check {
  const char* name;  ///< stable, for machines: "driver", "gpu", "python", ...
  Finding finding;
  CheckStatus status = CheckStatus::ok;
  std::string subject;
  std::uint64_t number = 0;
  std::size_t device = 0;  ///< gpu: index into Inventory::devices
};

struct Diagnosis {
  Inventory inventory;
  std::string interpreter;                 ///< path; empty when none was found
  std::optional<InterpreterFacts> python;  ///< its facts; std::nullopt if there is none or it did not answer
  std::vector<Check> checks;

  [[nodiscard]] bool has_problem() const {
    return std::any_of(checks.begin(), checks.end(),
                       [](const Check& check) { return check.status == CheckStatus::problem; });
  }
};

/// `program`: the program to record; empty: python3. Runs only its interpreter. May take seconds, as loading a driver
/// does.
[[nodiscard]] Diagnosis diagnose(const std::string& program);

// The checks, one function for each subject. Each appends its results to Diagnosis::checks.

void check_gpus(Diagnosis& diagnosis);
/// Finds the interpreter of `program` (python3 if empty) and queries it; then checks its stacks and its PyTorch.
void check_python(const std::string& program, Diagnosis& diagnosis);
/// The requirements of `tidemark run --driver on`; call it after check_python().
void check_cupti(Diagnosis& diagnosis);
void check_injections(Diagnosis& diagnosis);
void check_preload(Diagnosis& diagnosis);
void check_memory(Diagnosis& diagnosis);
/// memfd, the socket's folder, readable files of /proc, and space for recordings in this folder.
void check_system(Diagnosis& diagnosis);

[[nodiscard]] bool has_nvidia_gpu(const Inventory& inventory);

}  // namespace tidemark
