#include "plan/phantom_run.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "launch/environment.h"
#include "launch/interpreter_probe.h"
#include "phantom/gpu/abi.h"
#include "phantom/gpu/memory.h"
#include "phantom/gpu/usage_file.h"
#include "phantom/gpu/visible_devices.h"
#include "phantom/standins/standins.h"

namespace tidemark {

extern const char kNvidiaSmiQueries[];  // of nvidia_smi.sh

namespace {

/// As the libraries number themselves: CUDA 13.0 is 13000, cuDNN 9.19.0 is 91900, NCCL 2.28.9 is 22809, cuBLAS 12.8.4
/// is 120804.
struct TorchRequirements {
  int cuda = 0;
  int cublas = 0;
  int cudnn = 0;
  int nccl = 0;
};

/// Read from the package's requirements; for missing ones, the versions current with its version of CUDA.
[[nodiscard]] TorchRequirements torch_requirements(const InterpreterFacts& python);

namespace fs = std::filesystem;

using Version = std::array<int, 3>;

// "13.0" or "9.19.0.56": its first three numbers.
Version read_version(const std::string& text) {
  Version version{};
  std::sscanf(text.c_str(), "%d.%d.%d", &version[0], &version[1],
              &version[2]);  // NOLINT(cert-err34-c): 0 if there is none
  return version;
}

// The file METADATA of the package whose folder is `torch_folder`.
std::ifstream open_metadata(const std::string& torch_folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(torch_folder).parent_path(), error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("torch-") && name.ends_with(".dist-info")) return std::ifstream(entry.path() / "METADATA");
  }
  return {};
}

// The version from "Requires-Dist: nvidia-cudnn-cu13==9.19.0.56; platform_system == ...", for "nvidia-cudnn-".
bool requires_version(const std::string& line, const std::string& package, Version& version) {
  const std::string start = "Requires-Dist: " + package;
  const std::size_t equals = line.find("==");
  if (!line.starts_with(start) || equals == std::string::npos || line.find(';') < equals) return false;
  version = read_version(line.substr(equals + 2));
  return true;
}

TorchRequirements torch_requirements(const InterpreterFacts& python) {
  const Version cuda = read_version(python.torch_cuda);
  Version cublas = cuda;
  Version cudnn = cuda[0] >= 13 ? Version{9, 13, 0} : Version{9, 1, 0};
  Version nccl = {2, 27, 7};
  std::ifstream metadata = open_metadata(python.torch_folder);
  for (std::string line; std::getline(metadata, line) && !line.empty();) {
    requires_version(line, "nvidia-cublas-", cublas);
    requires_version(line, "nvidia-cudnn-", cudnn);
    requires_version(line, "nvidia-nccl-", nccl);
  }
  return {cuda[0] * 1000 + cuda[1] * 10, cublas[0] * 10000 + cublas[1] * 100 + cublas[2],
          cudnn[0] * 10000 + cudnn[1] * 100 + cudnn[2], nccl[0] * 10000 + nccl[1] * 100 + nccl[2]};
}

struct UsageOfProcess {
  pid_t pid = 0;
  std::unique_ptr<phantom::UsageFile> file;
};

/// A copy of each process's file, including ended ones; in no particular order.
[[nodiscard]] std::vector<UsageOfProcess> read_usage_files(const std::string& folder);

std::vector<UsageOfProcess> read_usage_files(const std::string& folder) {
  constexpr const char* kStart = "usage.";
  std::vector<UsageOfProcess> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (!entry.path().filename().string().starts_with(kStart)) continue;
    auto file = std::make_unique<phantom::UsageFile>();
    std::ifstream(entry.path(), std::ios::binary).read(reinterpret_cast<char*>(file.get()), sizeof *file);
    if (file->magic != phantom::UsageFile::kMagic) continue;
    found.push_back({static_cast<pid_t>(std::atoi(entry.path().extension().c_str() + 1)), std::move(file)});
  }
  return found;
}

/// Writes a program `nvidia-smi` into the folder, which it creates: it lists the planned GPUs (`-L`) and answers
/// `--query-gpu`, as CSV, with "[N/A]" for unsupported fields. Other arguments print a line for each GPU.
Result<void> write_nvidia_smi(const std::string& folder, const PhantomOptions& options);

std::string shell_word(const std::string& text) {
  std::string word = "'";
  for (const char letter : text) word += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return word + "'";
}

Result<void> write_nvidia_smi(const std::string& folder, const PhantomOptions& options) {
  std::string uuids;
  for (int device = 0; device < options.devices; ++device)
    uuids += (device == 0 ? "" : " ") + phantom::device_uuid(device);
  const std::string path = folder + "/nvidia-smi";
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  std::ofstream file(path);
  file << fmt::format(
              "#!/bin/sh\n# The GPUs of `tidemark plan`.\nname={} total={} capability={}.{} count={} uuids={}\n",
              shell_word(std::string(options.gpu.full_name)), options.memory_bytes / kMiB, options.gpu.major,
              options.gpu.minor, options.devices, shell_word(uuids))
       << kNvidiaSmiQueries;
  file.close();
  std::filesystem::permissions(path, std::filesystem::perms::owner_all, error);
  if (!file || error) return Error{fmt::format("{}: cannot be written", path)};
  return {};
}

namespace fs = std::filesystem;

Result<void> check_torch(const InterpreterFacts& python) {
  if (python.torch_folder.empty()) {
    return Error{
        fmt::format("{}: has no PyTorch; install one with CUDA, such as `pip install torch`", python.executable)};
  }
  if (!python.torch_hip.empty()) {
    return Error{fmt::format("PyTorch {} is built for ROCm; a plan needs a build for CUDA", python.torch_version)};
  }
  if (python.torch_cuda.empty()) {
    return Error{fmt::format("PyTorch {} is built without CUDA; a plan needs a build for CUDA, which needs no GPU",
                             python.torch_version)};
  }
  if (const int major = torch_requirements(python).cuda / 1000; major != 12 && major != 13) {
    return Error{fmt::format("PyTorch {} is built for CUDA {}; a plan needs CUDA 12 or 13", python.torch_version,
                             python.torch_cuda)};
  }
  return {};
}

// Whether one of the stand-ins replaces CUDA's runtime, which a library may have linked statically.
bool has_runtime(const std::vector<std::string>& standins) {
  return std::any_of(standins.begin(), standins.end(), [](const std::string& path) {
    return fs::path(path).filename().string().starts_with("libcudart.so");
  });
}

std::string text_in(const char* bytes, std::size_t most) {
  return {bytes, ::strnlen(bytes, most)};
}

std::string profile_text(const PhantomOptions& options, const TorchRequirements& versions) {
  const GpuProfile& gpu = options.gpu;
  const std::int64_t steps = options.steps ? static_cast<std::int64_t>(*options.steps) : -1;
  return fmt::format(
      "name {}\ndevices {}\nmemory {}\ncontext {}\nmajor {}\nminor {}\nmultiprocessors {}\nshared_per_block_optin {}\n"
      "shared_per_multiprocessor {}\nthreads_per_multiprocessor {}\nblocks_per_multiprocessor {}\nl2_cache {}\n"
      "memory_bus_bits {}\nsteps {}\ncuda_version {}\ncublas_version {}\ncudnn_version {}\nnccl_version {}\n"
      "nccl_first {}\nnccl_further {}\n",
      gpu.full_name, options.devices, options.memory_bytes, gpu.context_bytes, gpu.major, gpu.minor,
      gpu.multiprocessors, gpu.limits.shared_bytes_per_block, gpu.limits.shared_bytes, gpu.limits.threads,
      gpu.limits.blocks, gpu.l2_cache_bytes, gpu.memory_bus_bits, steps, versions.cuda, versions.cublas, versions.cudnn,
      versions.nccl, options.nccl_first_bytes, options.nccl_further_bytes);
}

// Fails with the function that the driver lacks or that failed.
class Driver {
 public:
  explicit Driver(void* library) : library_(library) {}

  template <typename... Arguments>
  void call(const char* name, Arguments... arguments) {
    if (failed_ != nullptr) return;
    auto* function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(library_, name));
    code_ = function == nullptr ? -1 : function(arguments...);
    if (code_ != 0) failed_ = name;
  }

  template <typename T>
  void attribute(T& value, int which, int device) {
    int number = 0;
    call("cuDeviceGetAttribute", &number, which, device);
    value = static_cast<T>(number);
  }

  [[nodiscard]] Result<void> result() const {
    if (failed_ == nullptr) return {};
    return Error{fmt::format("libcuda.so.1: {} failed with CUresult {}; name a GPU with --gpu, such as --gpu H100-80GB",
                             failed_, code_)};
  }

 private:
  void* library_;
  const char* failed_ = nullptr;
  int code_ = 0;
};

}  // namespace

Result<PhantomRun> PhantomRun::create(const InterpreterFacts& python, const PhantomOptions& options) {
  if (auto usable = check_torch(python); !usable) return usable.error();
  const auto phantom = find_own_library("libtidemark_phantom.so");
  if (!phantom) return phantom.error();

  auto created = ScratchFolder::create("tidemark-plan");
  if (!created) return created.error();
  PhantomRun run(std::move(*created), options.devices);
  const std::string& folder = run.folder();
  std::ofstream(folder + "/device") << profile_text(options, torch_requirements(python));
  auto standins = write_standins(folder, python.torch_folder, {}, *phantom);
  if (!standins) return standins.error();
  if (!has_runtime(*standins)) {
    return Error{
        fmt::format("PyTorch {} has the CUDA runtime linked statically; a plan needs a build that loads "
                    "libcudart.so, as those of PyPI do",
                    python.torch_version)};
  }
  run.preload_ = std::move(*standins);
  if (auto written = write_nvidia_smi(folder + "/bin", options); !written) return written.error();
  std::error_code error;
  // Triton before 3.3 links its compiled code with the driver, under its name for linkers.
  fs::create_symlink("libcuda.so.1", folder + "/libcuda.so", error);
  return run;
}

std::vector<std::string> PhantomRun::environment() const {
  // UUIDs that no real GPU has: a process that does not load the stand-ins, because it was started without LD_PRELOAD,
  // finds no GPU.
  const char* const path = std::getenv("PATH");
  std::string uuids;
  for (int device = 0; device < devices_; ++device) {
    uuids += (device == 0 ? "" : ",") + phantom::device_uuid(device);
  }
  // Triton searches files for the driver, not loaded libraries. Inductor's timings are wrong here and must not be
  // cached.
  return {"TIDEMARK_PHANTOM=" + folder(), "TRITON_LIBCUDA_PATH=" + folder(),
          "TORCHINDUCTOR_CACHE_DIR=" + folder() + "/inductor", "CUDA_VISIBLE_DEVICES=" + uuids,
          fmt::format("PATH={}/bin:{}", folder(), path != nullptr ? path : "/usr/bin:/bin")};
}

std::vector<std::uint64_t> PhantomRun::device_peaks() const {
  std::array<std::uint64_t, phantom::kMaximumDevices> peaks{};
  std::ifstream table(folder() + "/memory", std::ios::binary);
  table.seekg(offsetof(phantom::MemoryTable, peaks));
  if (!table.read(reinterpret_cast<char*>(peaks.data()), sizeof peaks)) return {};
  return {peaks.begin(), peaks.begin() + devices_};
}

PhantomUsage PhantomRun::usage() const {
  PhantomUsage usage;
  usage.device_peaks = device_peaks();
  std::set<std::string> unanswered;
  for (const UsageOfProcess& found : read_usage_files(folder())) {
    const phantom::UsageFile* const file = found.file.get();
    PhantomProcess& process = usage.processes.emplace_back();
    process.pid = found.pid;
    process.requests = file->requests.load();
    process.steps = file->steps.load();
    process.steps_by_marks = file->steps_by_marks.load() != 0;
    process.idle_optimizers = file->idle_optimizers.load();
    process.communicators = file->communicators.load();
    for (int device = 0; device < devices_; ++device) process.driver_bytes.push_back(file->driver_bytes[device].load());
    process.stopped = file->stopped.load() != 0;
    for (const phantom::LibraryMemory& library : file->libraries) {
      const std::string name = text_in(library.name, sizeof library.name);
      if (name.empty()) break;
      process.libraries.push_back({name, static_cast<std::uint32_t>(library.device), library.peak_bytes.load()});
    }
    if (usage.own_runtime.empty()) usage.own_runtime = text_in(file->own_runtime, sizeof file->own_runtime);
    usage.reads += file->reads.load();
    for (std::size_t kind = 0; kind < phantom::kEstimates; ++kind)
      usage.estimates[kind] += file->estimates[kind].load();
    const std::size_t names = std::min<std::size_t>(file->unanswered.load(), phantom::UsageFile::kMaxNames);
    for (std::size_t index = 0; index < names; ++index)
      unanswered.insert(text_in(file->names[index], phantom::UsageFile::kNameBytes));
  }
  usage.unanswered.assign(unanswered.begin(), unanswered.end());
  return usage;
}

Result<GpuProfile> profile_of_this_machine() {
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);  // stays loaded: it may have started threads
  if (library == nullptr) {
    return Error{"this machine has no NVIDIA GPU to plan for; name one with --gpu, such as --gpu H100-80GB"};
  }
  Driver driver(library);
  GpuProfile gpu;
  int device = 0;
  std::array<char, 256> name{};
  std::size_t memory = 0;
  driver.call("cuInit", 0U);
  driver.call("cuDeviceGet", &device, 0);
  driver.call("cuDeviceGetName", name.data(), static_cast<int>(name.size()) - 1, device);
  driver.call("cuDeviceTotalMem_v2", &memory, device);
  for (const auto& [number, which] : {std::pair{&gpu.major, phantom::kCapabilityMajor},
                                      {&gpu.minor, phantom::kCapabilityMinor},
                                      {&gpu.multiprocessors, phantom::kMultiprocessors},
                                      {&gpu.memory_bus_bits, phantom::kMemoryBusBits},
                                      {&gpu.limits.shared_bytes, phantom::kSharedBytesPerMultiprocessor},
                                      {&gpu.limits.shared_bytes_per_block, phantom::kSharedBytesPerBlockOptin},
                                      {&gpu.limits.threads, phantom::kThreadsPerMultiprocessor},
                                      {&gpu.limits.blocks, phantom::kBlocksPerMultiprocessor}}) {
    driver.attribute(*number, which, device);
  }
  driver.attribute(gpu.l2_cache_bytes, phantom::kL2CacheBytes, device);
  if (auto done = driver.result(); !done) return done.error();
  gpu.name = gpu.full_name = name.data();
  gpu.memory_bytes = memory;
  gpu.measured = true;
  return gpu;
}

}  // namespace tidemark
