#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "collect/machine/device_source.h"
#include "collect/machine/nvml_api.h"

namespace tidemark {
namespace {

using nvml::Functions;
using nvml::Return;

// Whether the device itself is gone, not only one of its values.
bool is_lost(Return code) {
  return code == nvml::kGpuIsLost || code == nvml::kResetRequired;
}

/// Calls a function that the library may lack.
template <typename Function, typename... Arguments>
Return call(Function function, Arguments... arguments) {
  return function == nullptr ? nvml::kFunctionNotFound : function(arguments...);
}

template <typename Function, typename... Arguments>
std::string text_from(Function function, Arguments... arguments) {
  std::array<char, nvml::kTextBytes> text{};
  const Return code = call(function, arguments..., text.data(), static_cast<unsigned>(text.size() - 1));
  return code == nvml::kSuccess ? text.data() : "";
}

// Converts NVML's "00000000:65:00.0" to the kernel's form "0000:65:00.0".
std::string bus_id_of(const Functions& api, nvml::Device device) {
  nvml::PciInfo pci{};
  if (call(api.pci_info, device, &pci) != nvml::kSuccess) return "";
  return fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
}

class NvmlSource final : public DeviceSource {
 public:
  explicit NvmlSource(std::unique_ptr<nvml::Library> library)
      : library_(std::move(library)), api_(library_->functions()) {
    unsigned count = 0;
    (void)api_.device_count(&count);
    for (unsigned index = 0; index < count; ++index) add(index);
  }
  ~NvmlSource() override { (void)api_.shutdown(); }
  NvmlSource(const NvmlSource&) = delete;
  NvmlSource& operator=(const NvmlSource&) = delete;

  [[nodiscard]] std::string driver() const override {
    std::string text = "NVIDIA driver " + text_from(api_.driver_version);
    int cuda = 0;
    if (call(api_.cuda_version, &cuda) == nvml::kSuccess) {
      text += fmt::format(", CUDA {}.{}", cuda / 1000, cuda % 1000 / 10);
    }
    return text;
  }

  [[nodiscard]] const std::vector<DeviceInfo>& devices() const override { return devices_; }

  Result<DeviceSample> read(std::size_t device) override {
    if (auto there = check(device); !there) return there.error();
    const nvml::Device handle = handles_[device];
    DeviceSample sample;
    const std::array<Return, 4> codes = {read_memory(handle, sample), read_utilization(handle, sample),
                                         read_temperature(handle, sample), read_power(handle, sample)};
    const auto lost = std::find_if(codes.begin(), codes.end(), is_lost);
    if (lost != codes.end()) return gone(device, *lost);
    return sample;
  }

  Result<std::optional<std::vector<SampledProcess>>> processes(std::size_t device) override {
    using Found = std::optional<std::vector<SampledProcess>>;
    if (auto there = check(device); !there) return there.error();
    // A GPU in MIG mode lists the processes of all its instances; each instance lists its own.
    if (devices_[device].mig_enabled.value_or(false)) return Found();
    std::vector<SampledProcess> found;
    const bool modern = api_.compute_processes != nullptr;
    const auto list = [&](auto versioned, auto first) {
      return modern ? add_processes<nvml::Process>(versioned, handles_[device], found)
                    : add_processes<nvml::ProcessV1>(first, handles_[device], found);
    };
    const Return compute = list(api_.compute_processes, api_.compute_processes_v1);
    const Return graphics = list(api_.graphics_processes, api_.graphics_processes_v1);
    for (const Return code : {compute, graphics}) {
      if (is_lost(code)) return gone(device, code);
    }
    if (compute != nvml::kSuccess && graphics != nvml::kSuccess) return Found();
    return Found(std::move(found));
  }

 private:
  void add(unsigned index) {
    DeviceInfo info;
    info.vendor = "nvidia";
    info.index = index;
    nvml::Device handle = nullptr;
    const Return code = api_.device_by_index(index, &handle);
    if (code != nvml::kSuccess) {
      info.name = "GPU that does not answer";
      add(std::move(info), nullptr, code);
      return;
    }
    info.name = text_from(api_.name, handle);
    info.uuid = text_from(api_.uuid, handle);
    info.bus_id = bus_id_of(api_, handle);
    info.total_bytes = total_of(handle);
    unsigned mode = 0;
    unsigned pending = 0;
    if (call(api_.mig_mode, handle, &mode, &pending) == nvml::kSuccess) info.mig_enabled = mode == nvml::kMigEnabled;
    const bool divided = info.mig_enabled.value_or(false);
    const std::string bus_id = info.bus_id;
    add(std::move(info), handle, nvml::kSuccess);
    if (divided) add_instances(index, bus_id, handle);
  }

  void add_instances(std::uint32_t gpu, const std::string& bus_id, nvml::Device handle) {
    unsigned count = 0;
    if (call(api_.mig_count, handle, &count) != nvml::kSuccess) return;
    for (unsigned index = 0; index < count; ++index) {
      nvml::Device instance = nullptr;
      if (call(api_.mig_by_index, handle, index, &instance) != nvml::kSuccess) continue;  // not in use
      DeviceInfo info;
      info.vendor = "nvidia";
      info.index = index;
      info.name = text_from(api_.name, instance);
      info.uuid = text_from(api_.uuid, instance);
      info.bus_id = bus_id;
      info.total_bytes = total_of(instance);
      info.instance_of = gpu;
      add(std::move(info), instance, nvml::kSuccess);
    }
  }

  void add(DeviceInfo info, nvml::Device handle, Return code) {
    devices_.push_back(std::move(info));
    handles_.push_back(handle);
    opened_.push_back(code);
  }

  [[nodiscard]] Result<void> check(std::size_t device) const {
    if (device >= devices_.size()) return Error{fmt::format("there is no NVIDIA device {}", device)};
    if (opened_[device] != nvml::kSuccess) return never_there(device, opened_[device]);
    return {};
  }

  [[nodiscard]] Error never_there(std::size_t device, Return code) const {
    const std::uint32_t index = devices_[device].index;
    if (code == nvml::kNoPermission) {
      return Error{
          fmt::format("no permission to use GPU {}; check who may open /dev/nvidia{}, in a container give it "
                      "this GPU too",
                      index, index)};
    }
    return Error{fmt::format("GPU {} does not answer ({}); `nvidia-smi -q` and `dmesg | grep NVRM` say more", index,
                             library_->describe(code))};
  }
  [[nodiscard]] Error gone(std::size_t device, Return code) const {
    const DeviceInfo& info = devices_[device];
    return Error{fmt::format("GPU {}{} does not answer any more ({}); `nvidia-smi -q` and `dmesg | grep NVRM` say more",
                             info.index, info.uuid.empty() ? "" : fmt::format(" ({})", info.uuid),
                             library_->describe(code))};
  }

  struct Memory {
    std::optional<std::uint64_t> total_bytes;
    std::optional<std::uint64_t> used_bytes;
    std::optional<std::uint64_t> driver_reserved_bytes;
  };

  Return read_memory(nvml::Device handle, Memory& memory) const {
    nvml::MemoryV2 second{};
    second.version = nvml::kMemoryV2;
    const Return code = call(api_.memory_v2, handle, &second);
    if (code == nvml::kSuccess) {
      memory = {second.total, second.used, second.reserved};
      return code;
    }
    if (is_lost(code)) return code;
    nvml::Memory first{};
    const Return simple = call(api_.memory, handle, &first);
    if (simple == nvml::kSuccess) memory = {first.total, first.used, std::nullopt};
    return simple;
  }

  Return read_memory(nvml::Device handle, DeviceSample& sample) const {
    Memory memory;
    const Return code = read_memory(handle, memory);
    sample.used_bytes = memory.used_bytes;
    sample.driver_reserved_bytes = memory.driver_reserved_bytes;
    return code;
  }

  [[nodiscard]] std::optional<std::uint64_t> total_of(nvml::Device handle) const {
    Memory memory;
    (void)read_memory(handle, memory);
    return memory.total_bytes;
  }

  Return read_utilization(nvml::Device handle, DeviceSample& sample) const {
    nvml::Utilization utilization{};
    const Return code = call(api_.utilization, handle, &utilization);
    if (code == nvml::kSuccess) sample.utilization_percent = utilization.gpu;
    return code;
  }

  Return read_temperature(nvml::Device handle, DeviceSample& sample) const {
    unsigned celsius = 0;
    const Return code = call(api_.temperature, handle, nvml::kTemperatureGpu, &celsius);
    if (code == nvml::kSuccess) sample.temperature_celsius = static_cast<std::int32_t>(celsius);
    return code;
  }

  Return read_power(nvml::Device handle, DeviceSample& sample) const {
    unsigned milliwatts = 0;
    const Return code = call(api_.power, handle, &milliwatts);
    if (code == nvml::kSuccess) sample.power_milliwatts = milliwatts;
    return code;
  }

  // More processes may start between two calls, so the buffer is made larger than the reported count.
  template <typename Process, typename Function>
  static Return add_processes(Function function, nvml::Device handle, std::vector<SampledProcess>& found) {
    std::vector<Process> processes(64);
    unsigned count = 0;
    Return code = nvml::kInsufficientSize;
    for (int attempt = 0; attempt < 4 && code == nvml::kInsufficientSize; ++attempt) {
      count = static_cast<unsigned>(processes.size());
      code = call(function, handle, &count, processes.data());
      if (code == nvml::kInsufficientSize) processes.resize(std::max(processes.size(), std::size_t{count}) * 2);
    }
    if (code != nvml::kSuccess) return code;
    processes.resize(std::min(processes.size(), std::size_t{count}));
    for (const Process& process : processes) add_process(process.pid, process.used_bytes, found);
    return code;
  }

  // A process that computes and draws is in both lists, with the same sum.
  static void add_process(unsigned pid, unsigned long long bytes, std::vector<SampledProcess>& found) {
    const auto known =
        std::find_if(found.begin(), found.end(), [&](const SampledProcess& process) { return process.pid == pid; });
    SampledProcess& process = known != found.end() ? *known : found.emplace_back();
    process.pid = pid;
    if (bytes != nvml::kNotAvailable) process.bytes = std::max<std::uint64_t>(process.bytes.value_or(0), bytes);
  }

  std::unique_ptr<nvml::Library> library_;
  const Functions& api_;
  std::vector<DeviceInfo> devices_;
  std::vector<nvml::Device> handles_;
  std::vector<Return> opened_;  // results of requesting the device handles
};

std::string why_not_started(const nvml::Library& library, Return code) {
  switch (code) {
    case nvml::kDriverNotLoaded:
      return "NVIDIA's library is here but its kernel driver is not loaded; load it (`modprobe nvidia`), or start the "
             "container with the GPUs (docker run --gpus all)";
    case nvml::kVersionMismatch:
      return "NVIDIA's library and its kernel driver are of different versions; reboot, or load the new driver";
    case nvml::kNoPermission:
      return "no permission to use the NVIDIA driver; check who may open /dev/nvidiactl";
    default:
      return fmt::format("the NVIDIA driver does not start ({}); `nvidia-smi` may say more", library.describe(code));
  }
}

}  // namespace

OpenedSource open_nvml_source(const SourcePlaces& places) {
  OpenedSource opened;
  opened.vendor = "nvidia";
  auto library = nvml::Library::load(places.nvml);
  if (!library) {
    // The kernel's driver without the library: a container without the user-space part of the driver.
    if (std::filesystem::exists(places.root + "/proc/driver/nvidia/version")) {
      opened.problem = fmt::format(
          "the NVIDIA driver is loaded, but its library is not here ({}); in a container set "
          "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
          library.error().message);
    } else {
      opened.absent = "no NVIDIA driver";
    }
    return opened;
  }
  const Return code = (*library)->functions().init();
  if (code == nvml::kSuccess) {
    opened.source = std::make_unique<NvmlSource>(std::move(*library));
  } else {
    opened.problem = why_not_started(**library, code);
  }
  return opened;
}

}  // namespace tidemark
