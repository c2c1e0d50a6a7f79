#include "query/words/machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace tidemark {
namespace {

constexpr char kGpusForContainer[] = "in a container, make the GPUs available to it (docker run --gpus all)";
constexpr char kNativeStacks[] =
    "record native stacks (--stacks native), or use a standard build of CPython 3.9 to 3.14";

std::string bytes_or_unknown(const std::optional<std::uint64_t>& bytes) {
  return bytes ? format_bytes(*bytes) : "n/a";
}

// Drivers report problems as "problem; remedy".
CheckText split(const std::string& problem) {
  const std::size_t end = std::min(problem.find("; "), problem.size());
  return {problem.substr(0, end), end == problem.size() ? "" : problem.substr(end + 2)};
}

std::string no_stacks_text(const InterpreterFacts& python, const char* why) {
  return fmt::format("Python stacks of Python {} cannot be recorded: {}", python.version, why);
}

std::string torch_text(const InterpreterFacts& python) {
  const std::string build = !python.torch_cuda.empty()  ? "CUDA " + python.torch_cuda
                            : !python.torch_hip.empty() ? "ROCm " + python.torch_hip
                                                        : "CPU only";
  return fmt::format("PyTorch {} ({}) in {}", python.torch_version, build, python.torch_folder);
}

CheckText gpu_text(const Check& check, const Diagnosis& diagnosis) {
  const Inventory& inventory = diagnosis.inventory;
  const std::string title =
      check.device < inventory.devices.size() ? device_title(inventory.devices[check.device].info) : "";
  switch (check.finding) {
    case Finding::driver_works:
      return {check.subject + (check.subject.starts_with("NVIDIA") ? "; NVML works" : ""), ""};
    case Finding::driver_absent:
      return {"no GPU or GPU driver found; only CPU memory can be recorded", kGpusForContainer};
    case Finding::gpu_works:
      return {title, ""};
    case Finding::gpu_memory_unknown:
      return {title + "; the driver does not report how much of its memory is used",
              "PyTorch's allocations can be recorded; `tidemark ledger` cannot show the rest of the device's memory"};
    case Finding::gpu_absent:
      return {"the driver lists no GPU for this process; only CPU memory can be recorded", kGpusForContainer};
    default:
      return split(check.subject);  // in the words of the driver, or of the parser of CUDA_VISIBLE_DEVICES
  }
}

CheckText python_text(const Check& check, const Diagnosis& diagnosis) {
  const InterpreterFacts python = diagnosis.python.value_or(InterpreterFacts{});
  switch (check.finding) {
    case Finding::interpreter_works:
      return {fmt::format("Python {} at {}", python.version, diagnosis.interpreter), ""};
    case Finding::interpreter_not_found:
      return {fmt::format("{} was not examined: it is not in PATH, or is neither Python nor a Python script",
                          check.subject),
              "name the interpreter: tidemark doctor -- /path/to/python"};
    case Finding::stacks_supported:
      return {fmt::format("Python {} stacks can be recorded", python.version), ""};
    case Finding::stacks_not_cpython:
      return {no_stacks_text(python, "it is not CPython"), kNativeStacks};
    case Finding::stacks_free_threaded:
      return {no_stacks_text(python, "it is a free-threaded build"), kNativeStacks};
    case Finding::stacks_debug_build:
      return {no_stacks_text(python, "it is a debug build"), kNativeStacks};
    case Finding::stacks_unknown_version:
      return {no_stacks_text(python, "this version is not supported"), kNativeStacks};
    case Finding::torch_supported:
      return {torch_text(python), ""};
    case Finding::torch_absent:
      return {fmt::format("PyTorch is not installed for {}: nothing would be recorded", python.executable),
              "activate the environment that has it, or name its interpreter: tidemark doctor -- /path/to/python"};
    case Finding::torch_too_old:
      return {torch_text(python) + ": older than the supported versions", "use PyTorch 1.13 or newer"};
    case Finding::torch_untested:
      return {torch_text(python) + ": newer than the tested versions (1.13 to 2.15)",
              "record a short run and check the data quality in `tidemark summary`"};
    case Finding::torch_without_cuda:
      return {"the machine has an NVIDIA GPU, but this PyTorch is built without CUDA",
              "install a CUDA build of PyTorch to use the GPU"};
    case Finding::torch_cuda_too_new:
      return {fmt::format("this PyTorch is built for CUDA {}, newer than the driver ({})", python.torch_cuda,
                          check.subject),
              fmt::format("update the driver, or install a build of PyTorch for CUDA {}", check.number)};
    default:
      return {check.subject, ""};
  }
}

CheckText injection_text(const Check& check) {
  switch (check.finding) {
    case Finding::cupti_found:
      return {fmt::format("CUPTI is at {}, for `run --driver on`", check.subject), ""};
    case Finding::cupti_missing:
      return {"CUPTI was not found: `run --driver on` cannot record the CUDA driver's memory calls",
              "install the package nvidia-cuda-cupti, which CUDA builds of PyTorch depend on, or the CUDA toolkit"};
    case Finding::cupti_not_needed:
      return {"CUPTI was not found; it is not needed without an NVIDIA GPU", ""};
    case Finding::injection_none:
      return {"no profiler is injected into CUDA programs by the environment", ""};
    case Finding::injection_found:
      return {fmt::format("{}: a profiler that may use CUPTI, which supports one subscriber at a time", check.subject),
              "for `run --driver on`, start tidemark outside that profiler, or unset the variable"};
    case Finding::preload_library_found:
      return {"the library to preload is " + check.subject, ""};
    case Finding::ld_preload_unset:
      return {"LD_PRELOAD is not set", ""};
    case Finding::ld_preload_compatible:
      return {fmt::format("LD_PRELOAD={}: tidemark's library is loaded before it", check.subject), ""};
    case Finding::ld_preload_profiler:
      return {fmt::format("LD_PRELOAD={} loads another memory profiler", check.subject),
              "unset LD_PRELOAD before `tidemark run`"};
    default:
      return {check.subject, ""};
  }
}

CheckText system_text(const Check& check, const Inventory& inventory) {
  const std::string cgroup =
      inventory.cgroup ? fmt::format(" (control groups version {})", inventory.cgroup->version) : "";
  switch (check.finding) {
    case Finding::memory_free:
      return {host_memory_text(inventory) + cgroup, ""};
    case Finding::memory_nearly_full:
      return {host_memory_text(inventory) + cgroup,
              "90% of the limit is in use; part of it may be cached files, which the kernel reclaims first"};
    case Finding::oom_kills:
      return {fmt::format("{} processes of this control group were killed by the kernel's OOM killer", check.number),
              "request more host memory, or use fewer data loader workers"};
    case Finding::memfd_works:
      return {"shared memory (memfd) works", ""};
    case Finding::memfd_failed:
      return {"memfd_create does not work: " + check.subject,
              "allow memfd_create and its seals in the sandbox; recording requires them"};
    case Finding::socket_folder_found:
      return {"the recorder's socket is created in " + check.subject, ""};
    case Finding::socket_folder_missing:
      return {"no folder for the recorder's socket: XDG_RUNTIME_DIR, TMPDIR and /tmp are not writable",
              "set TMPDIR to a writable folder with a short path"};
    case Finding::permissions_granted:
      return {"/proc and pidfd_open can be used; ptrace is not needed", ""};
    case Finding::pidfd_unavailable:
      return {"pidfd_open is unavailable: the end of a process is noticed when its parent waits for it",
              "allow it in the sandbox"};
    case Finding::pss_unavailable:
      return {"/proc/PID/smaps_rollup is unavailable: samples have no proportional set size (PSS)",
              "allow it in the sandbox"};
    case Finding::space_free:
      return {fmt::format("{} free in this folder for recordings", format_bytes(check.number)), ""};
    case Finding::space_low:
      return {fmt::format("{} free in this folder for recordings", format_bytes(check.number)),
              "long runs may need more: name a file in another folder with -o, or set --max-size"};
    case Finding::space_unwritable:
      return {"recordings cannot be written to this folder: " + check.subject,
              "change to another folder, or name a file with -o"};
    default:
      return {check.subject, ""};
  }
}

}  // namespace

std::string device_title(const DeviceInfo& info) {
  const std::string number = info.instance_of ? fmt::format("GPU {} instance {}", *info.instance_of, info.index)
                                              : fmt::format("GPU {}", info.index);
  return fmt::format("{}: {}", number, info.name);
}

std::string host_memory_text(const Inventory& inventory) {
  std::string text = fmt::format("{} available of {}", bytes_or_unknown(inventory.host.available_bytes),
                                 bytes_or_unknown(inventory.host.total_bytes));
  if (inventory.cgroup && inventory.cgroup->limit_bytes) {
    text += fmt::format("; limit of this control group: {}, {} used with cached files",
                        format_bytes(*inventory.cgroup->limit_bytes), bytes_or_unknown(inventory.cgroup->usage_bytes));
  }
  return text;
}

CheckText check_text(const Check& check, const Diagnosis& diagnosis) {
  if (check.finding <= Finding::gpus_hidden) return gpu_text(check, diagnosis);
  if (check.finding <= Finding::torch_cuda_too_new) return python_text(check, diagnosis);
  if (check.finding <= Finding::ld_preload_profiler) return injection_text(check);
  return system_text(check, diagnosis.inventory);
}

}  // namespace tidemark
