#include "plan/phantom_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "launch/environment.h"
#include "phantom/gpu/device_uuid.h"
#include "phantom/gpu/memory_table.h"
#include "phantom/standins/standins.h"
#include "plan/nvidia_smi.h"
#include "plan/torch_requirements.h"
#include "plan/usage_files.h"

namespace tidemark {
namespace {

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

// Whether one of the stand-ins takes the place of CUDA's runtime, which a library may have linked statically.
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
      "memory_bus_bits {}\nsteps {}\ncuda_version {}\ncublas_version {}\ncudnn_version {}\nnccl_version {}\n",
      gpu.full_name, options.devices, options.memory_bytes, gpu.context_bytes, gpu.major, gpu.minor,
      gpu.multiprocessors, gpu.limits.shared_bytes_per_block, gpu.limits.shared_bytes, gpu.limits.threads,
      gpu.limits.blocks, gpu.l2_cache_bytes, gpu.memory_bus_bits, steps, versions.cuda, versions.cublas, versions.cudnn,
      versions.nccl);
}

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
  // Triton before 3.3 links what it compiles with the driver, under its name for linkers.
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
  // Triton looks for the driver in files, not among loaded libraries. What Inductor times here is not true and must not
  // be kept.
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

}  // namespace tidemark
