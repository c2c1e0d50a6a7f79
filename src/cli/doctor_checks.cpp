#include "cli/doctor_checks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/units.h"
#include "cli/devices_report.h"
#include "cli/interpreter_probe.h"
#include "cli/preload_library.h"
#include "collect/machine/inventory.h"
#include "collect/machine/process_tree.h"
#include "collect/process/python/layout.h"

extern char** environ;  // NOLINT: POSIX asks for this declaration

namespace tidemark::cli {
namespace {

using Status = Check::Status;
using Checks = std::vector<Check>;

constexpr std::uint64_t kLittleSpace = std::uint64_t{1} << 30;
constexpr char kGpusForContainer[] = "in a container, give it the GPUs (docker run --gpus all)";

bool has_nvidia_gpu(const Inventory& inventory) {
  return std::any_of(inventory.devices.begin(), inventory.devices.end(),
                     [](const ListedDevice& device) { return device.info.vendor == "nvidia"; });
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// ---- GPUs

// What drivers say is wrong comes as "what is wrong; what to do about it".
Check split_check(const char* name, Status status, const std::string& problem) {
  const std::size_t end = std::min(problem.find("; "), problem.size());
  return {name, status, problem.substr(0, end), end == problem.size() ? "" : problem.substr(end + 2)};
}

void add_driver(const ListedDriver& driver, const Inventory& inventory, Checks& checks) {
  if (!driver.problem.empty()) return checks.push_back(split_check("driver", Status::problem, driver.problem));
  checks.push_back({"driver", Status::ok, driver.version + (driver.vendor == "nvidia" ? "; NVML works" : ""), ""});
  const bool has_devices = std::any_of(inventory.devices.begin(), inventory.devices.end(),
                                       [&](const ListedDevice& device) { return device.info.vendor == driver.vendor; });
  if (!has_devices) {
    checks.push_back({"gpu", Status::warning, "the driver has no GPU for this process: only CPU memory can be recorded",
                      kGpusForContainer});
  }
}

void add_gpu(const ListedDevice& device, Checks& checks) {
  if (!device.error.empty()) return checks.push_back(split_check("gpu", Status::problem, device.error));
  Check check{"gpu", Status::ok, device_title(device.info), ""};
  const bool divided = device.info.mig_enabled.value_or(false);
  if (!device.reading.used_bytes && !divided) {
    check.status = Status::warning;
    check.text += "; the driver does not say how much of its memory is used";
    check.advice = "what PyTorch allocates can be recorded; `tidemark ledger` cannot tell what else there is";
  }
  checks.push_back(std::move(check));
}

void add_gpus(const Inventory& inventory, Checks& checks) {
  for (const ListedDriver& driver : inventory.drivers) add_driver(driver, inventory, checks);
  for (const ListedDevice& device : inventory.devices) add_gpu(device, checks);
  if (inventory.drivers.empty()) {
    checks.push_back({"driver", Status::warning, "no GPU and no driver of one here: only CPU memory can be recorded",
                      kGpusForContainer});
  }
  if (!inventory.visibility_problem.empty()) {
    checks.push_back(split_check("visible_devices", Status::warning, inventory.visibility_problem));
  }
}

// ---- Python and PyTorch

/// What can be said of Python stacks.
Check stacks_check(const InterpreterFacts& python) {
  std::string why;
  if (python.implementation != "cpython") why = "it is not CPython";
  if (python.free_threaded) why = "it is a free-threaded build";
  if (python.debug) why = "it is a debug build";
  if (process::find_layout(python.layout) == nullptr) why = "this version is not among those that can be walked";
  if (why.empty())
    return {"python_stacks", Status::ok, fmt::format("Python {} stacks can be recorded", python.version), ""};
  return {"python_stacks", Status::warning, fmt::format("no Python stacks of Python {}: {}", python.version, why),
          "record native stacks (--stacks native), or use an ordinary CPython 3.9 to 3.14"};
}

/// "2.15.0+cu130" as 2015; 0 when it cannot be read.
int torch_number(const std::string& version) {
  int major = 0;
  int minor = 0;
  return std::sscanf(version.c_str(), "%d.%d", &major, &minor) == 2 ? major * 1000 + minor : 0;  // NOLINT
}

Check torch_check(const InterpreterFacts& python, Status without_torch) {
  constexpr int kOldest = 1013;
  constexpr int kNewest = 2015;
  if (python.torch_version.empty()) {
    return {"torch", without_torch, fmt::format("{} has no PyTorch: nothing would be recorded", python.executable),
            "activate the environment that has it, or name its interpreter: tidemark doctor -- /path/to/python"};
  }
  const std::string build = !python.torch_cuda.empty()  ? "CUDA " + python.torch_cuda
                            : !python.torch_hip.empty() ? "ROCm " + python.torch_hip
                                                        : "CPU only";
  const std::string text = fmt::format("PyTorch {} ({}) in {}", python.torch_version, build, python.torch_folder);
  const int number = torch_number(python.torch_version);
  if (number < kOldest) {
    return {"torch", Status::warning, text + ": older than any that tidemark knows", "use PyTorch 1.13 or newer"};
  }
  if (number > kNewest) {
    return {"torch", Status::warning, text + ": newer than those that were tested (1.13 to 2.15)",
            "record a short run and look at the data quality in `tidemark summary`"};
  }
  return {"torch", Status::ok, text, ""};
}

/// Of CUDA's version in `text`, such as "NVIDIA driver 580.1, CUDA 13.0"; 0 when it has none.
int cuda_major(const std::string& text) {
  const std::size_t start = text.find("CUDA ");
  return start == std::string::npos ? 0 : std::atoi(text.c_str() + start + 5);  // NOLINT(cert-err34-c): 0 will do
}

// A driver runs what was built for its CUDA's major version and for older ones (NVIDIA, "CUDA Compatibility").
void add_torch_cuda(const InterpreterFacts& python, const Inventory& inventory, Checks& checks) {
  const auto nvidia = std::find_if(inventory.drivers.begin(), inventory.drivers.end(),
                                   [](const ListedDriver& driver) { return driver.vendor == "nvidia"; });
  if (nvidia == inventory.drivers.end() || !has_nvidia_gpu(inventory) || python.torch_version.empty()) return;
  if (python.torch_cuda.empty()) {
    checks.push_back({"torch_cuda", Status::warning, "there is an NVIDIA GPU, but this PyTorch is built without CUDA",
                      "install a CUDA build of PyTorch to use the GPU"});
    return;
  }
  const int supported = cuda_major(nvidia->version);
  if (supported == 0 || supported >= cuda_major("CUDA " + python.torch_cuda)) return;
  checks.push_back(
      {"torch_cuda", Status::warning,
       fmt::format("this PyTorch is built for CUDA {}, newer than the driver ({})", python.torch_cuda, nvidia->version),
       fmt::format("update the driver, or install a build of PyTorch for CUDA {}", supported)});
}

std::optional<InterpreterFacts> add_python(const std::string& program, const Inventory& inventory, Checks& checks) {
  const bool asked = !program.empty();
  const Status missing = asked ? Status::problem : Status::warning;
  const std::string name = asked ? program : "python3";
  const auto interpreter = interpreter_of(name);
  if (!interpreter) {
    checks.push_back(
        {"python", missing,
         fmt::format("{} is not in PATH, or is neither Python nor a script for it: it was not examined", name),
         "name the interpreter: tidemark doctor -- /path/to/python"});
    return std::nullopt;
  }
  const auto python = probe_interpreter(*interpreter);
  if (!python) {
    checks.push_back({"python", missing, python.error().message, ""});
    return std::nullopt;
  }
  checks.push_back({"python", Status::ok, fmt::format("Python {} at {}", python->version, *interpreter), ""});
  checks.push_back(stacks_check(*python));
  checks.push_back(torch_check(*python, missing));
  add_torch_cuda(*python, inventory, checks);
  return *python;
}

// ---- CUPTI and injected libraries

std::string first_match(const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    glob_t found{};
    const int failed = ::glob(pattern.c_str(), 0, nullptr, &found);
    std::string path = failed == 0 && found.gl_pathc > 0 ? found.gl_pathv[0] : "";
    ::globfree(&found);
    if (!path.empty()) return path;
  }
  return "";
}

// `tidemark run --driver on` needs it.
void add_cupti(const std::optional<InterpreterFacts>& python, bool has_nvidia, Checks& checks) {
  const std::string torch = python ? python->torch_folder : "";
  std::vector<std::string> patterns;
  if (!torch.empty()) patterns = {torch + "/lib/libcupti*.so*", torch + "/../nvidia/*/lib/libcupti.so*"};
  patterns.insert(patterns.end(), {"/usr/local/cuda*/extras/CUPTI/lib64/libcupti.so*",
                                   "/usr/local/cuda*/targets/*/lib/libcupti.so*", "/usr/lib/*-linux-gnu/libcupti.so*"});
  const std::string path = first_match(patterns);
  if (!path.empty()) {
    checks.push_back({"cupti", Status::ok, fmt::format("CUPTI is at {}, for `run --driver on`", path), ""});
  } else if (has_nvidia) {
    checks.push_back({"cupti", Status::warning,
                      "CUPTI was not found: `run --driver on` cannot record what libraries take from the CUDA driver",
                      "install PyPI's nvidia-cuda-cupti, which CUDA builds of PyTorch bring, or the CUDA toolkit"});
  } else {
    checks.push_back({"cupti", Status::ok, "CUPTI was not found; without an NVIDIA GPU it is not needed", ""});
  }
}

void add_injections(Checks& checks) {
  std::vector<std::string> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    for (const char* start : {"CUDA_INJECTION64_PATH=", "NVTX_INJECTION64_PATH=", "NSYS_", "NV_COMPUTE_PROFILER_"}) {
      if (text.rfind(start, 0) == 0) found.push_back(text);
    }
  }
  if (found.empty()) {
    checks.push_back({"injection", Status::ok, "no profiler is injected into CUDA programs by the environment", ""});
    return;
  }
  std::sort(found.begin(), found.end());
  checks.push_back(
      {"injection", Status::warning,
       fmt::format("{}: a profiler that may hold CUPTI, which serves one at a time", fmt::join(found, " ")),
       "for `run --driver on`, start tidemark outside that profiler, or unset the variable"});
}

void add_preload(Checks& checks) {
  const auto library = preload_library();
  checks.push_back(library ? Check{"preload_library", Status::ok, "the library to preload is " + *library, ""}
                           : Check{"preload_library", Status::problem, library.error().message, ""});
  const std::string list = variable("LD_PRELOAD");
  if (list.empty()) {
    checks.push_back({"ld_preload", Status::ok, "LD_PRELOAD is not set", ""});
    return;
  }
  Check check{"ld_preload", Status::ok, fmt::format("LD_PRELOAD={}: tidemark's library goes before it", list), ""};
  for (const char* other : {"libtidemark_preload", "libmemray", "libheaptrack"}) {
    if (list.find(other) == std::string::npos) continue;
    check = {"ld_preload", Status::warning, fmt::format("LD_PRELOAD={} loads another memory profiler", list),
             "unset LD_PRELOAD before `tidemark run`"};
  }
  checks.push_back(std::move(check));
}

// ---- The system

void add_memory(const Inventory& inventory, Checks& checks) {
  const auto limit = inventory.cgroup ? inventory.cgroup->limit_bytes() : std::nullopt;
  const CgroupReading group = inventory.cgroup ? inventory.cgroup->read() : CgroupReading{};
  Check check{"host_memory", Status::ok, host_memory_text(inventory.host, inventory.cgroup), ""};
  if (inventory.cgroup) check.text += fmt::format(" (control groups version {})", inventory.cgroup->version());
  if (limit && group.usage_bytes && *group.usage_bytes > *limit / 10 * 9) {
    check.status = Status::warning;
    check.advice =
        "nine tenths of the limit are in use; part of it may be cached files, which the kernel gives up first";
  }
  checks.push_back(std::move(check));
  if (group.oom_kills.value_or(0) == 0) return;
  checks.push_back({"oom_kills", Status::warning,
                    fmt::format("{} processes of this control group were killed for lack of memory", *group.oom_kills),
                    "ask for more host memory, or use fewer data loader workers"});
}

void add_shared_memory(Checks& checks) {
  const int fd = ::memfd_create("tidemark-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const bool works = fd >= 0 && ::ftruncate(fd, 4096) == 0 && ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0;
  const std::string why = works ? "" : std::strerror(errno);
  if (fd >= 0) ::close(fd);
  checks.push_back(works ? Check{"memfd", Status::ok, "shared memory (memfd) works", ""}
                         : Check{"memfd", Status::problem, "memfd_create does not work: " + why,
                                 "the sandbox must allow memfd_create and its seals; nothing can be recorded without"});
}

void add_socket(Checks& checks) {
  for (const std::string& folder : {variable("XDG_RUNTIME_DIR"), variable("TMPDIR"), std::string("/tmp")}) {
    if (folder.empty() || folder.size() > 60 || ::access(folder.c_str(), W_OK | X_OK) != 0) continue;
    checks.push_back({"socket", Status::ok, "the recorder's socket goes to " + folder, ""});
    return;
  }
  checks.push_back({"socket", Status::problem,
                    "no folder for the recorder's socket: neither XDG_RUNTIME_DIR, TMPDIR nor /tmp is writable",
                    "set TMPDIR to a short path that you may write to"});
}

void add_permissions(Checks& checks) {
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
  if (pidfd >= 0) ::close(pidfd);
  std::string missing;
  if (pidfd < 0) missing += " pidfd_open (a process's end is noticed only once its parent takes its status);";
  if (!proportional_bytes(::getpid())) missing += " /proc/PID/smaps_rollup (no PSS in samples);";
  if (missing.empty()) {
    checks.push_back(
        {"permissions", Status::ok, "what is read of processes in /proc can be read; ptrace is not needed", ""});
  } else {
    missing.pop_back();
    checks.push_back(
        {"permissions", Status::warning, "not to be had here:" + missing, "allow it in the sandbox, or do without"});
  }
}

void add_space(Checks& checks) {
  struct statvfs space {};
  if (::access(".", W_OK | X_OK) != 0) {
    checks.push_back({"space", Status::problem,
                      fmt::format("recordings cannot be written to this folder: {}", std::strerror(errno)),
                      "change to another folder, or name the file with -o"});
    return;
  }
  if (::statvfs(".", &space) != 0) return;
  const std::uint64_t free = std::uint64_t{space.f_bavail} * space.f_frsize;
  Check check{"space", Status::ok, fmt::format("{} free in this folder for recordings", format_bytes(free)), ""};
  if (free < kLittleSpace) {
    check.status = Status::warning;
    check.advice = "long runs may need more: name another folder with -o, or set --max-size";
  }
  checks.push_back(std::move(check));
}

}  // namespace

std::vector<Check> examine_machine(const std::string& program) {
  const Inventory inventory = take_inventory();
  Checks checks;
  add_gpus(inventory, checks);
  const auto python = add_python(program, inventory, checks);
  add_cupti(python, has_nvidia_gpu(inventory), checks);
  add_injections(checks);
  add_preload(checks);
  add_memory(inventory, checks);
  add_shared_memory(checks);
  add_socket(checks);
  add_permissions(checks);
  add_space(checks);
  return checks;
}

}  // namespace tidemark::cli
