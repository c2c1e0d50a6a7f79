#include "device_machines.h"

#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

namespace tidemark::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t kMiB = 1 << 20;

SampledProcess listed(std::int64_t pid, std::optional<std::uint64_t> bytes) {
  return {pid, ProcessKind::other, bytes, ""};
}

class RealNvml final : public DeviceMachine {
 public:
  std::unique_ptr<DeviceSource> open() override {
    for (OpenedSource& opened : open_device_sources()) {
      if (std::string(opened.vendor) == "nvidia") return std::move(opened.source);
    }
    return nullptr;
  }
};

/// Two GPUs, one of them divided by MIG into one instance.
class FakeNvml final : public DeviceMachine {
 public:
  explicit FakeNvml(bool old) : old_(old) {
    script_["devices"] = {{{"name", "Fake H100"},
                           {"uuid", "GPU-1111"},
                           {"bus", 0x65},
                           {"memory", {{"total", 1000 * kMiB}, {"reserved", 20 * kMiB}, {"used", 300 * kMiB}}},
                           {"utilization", 37},
                           {"temperature", 41},
                           {"power", 71500},
                           {"processes",
                            {{{"pid", 70}, {"bytes", 200 * kMiB}},
                             {{"pid", 71}},
                             {{"pid", 70}, {"bytes", 200 * kMiB}, {"graphics", true}},
                             {{"pid", 72}, {"bytes", 5 * kMiB}, {"graphics", true}}}}},
                          {{"name", "Fake A100"},
                           {"uuid", "GPU-2222"},
                           {"bus", 0xb3},
                           {"memory", {{"total", 500 * kMiB}, {"reserved", 10 * kMiB}, {"used", 0}}},
                           {"mig",
                            {nullptr,
                             {{"name", "Fake A100 MIG 1g.5gb"},
                              {"uuid", "MIG-3333"},
                              {"memory", {{"total", 100 * kMiB}, {"used", 4 * kMiB}}},
                              {"processes", {{{"pid", 80}, {"bytes", 4 * kMiB}}}},
                              {"returns", {{"nvmlDeviceGetUtilizationRates", 3}}}}}}}};
    script_["devices"][0]["lost_when"] = folder_.at("lost");
  }

  std::unique_ptr<DeviceSource> open() override {
    ::setenv("FAKES_NVML", folder_.write("nvml.json", script_.dump()).c_str(), 1);
    SourcePlaces places{folder_.path(), old_ ? FAKES_NVML_OLD : FAKES_NVML_NEW};
    return std::move(open_device_sources(places).front().source);
  }

  [[nodiscard]] std::vector<ExpectedDevice> expected() const override {
    const std::vector<SampledProcess> processes = {listed(70, 200 * kMiB), listed(71, std::nullopt),
                                                   listed(72, 5 * kMiB)};
    if (old_) {
      // Without version 2, `used` includes the driver's part; MIG is unknown.
      return {{{{"nvidia", 0, {}, {}, "Fake H100", "GPU-1111", "0000:65:00.0", 1000 * kMiB}, {}},
               {0, {}, 320 * kMiB, {}, 37, 41, 71500},
               processes},
              {{{"nvidia", 1, {}, {}, "Fake A100", "GPU-2222", "0000:b3:00.0", 500 * kMiB}, {}},
               {0, {}, 10 * kMiB, {}, {}, {}, {}},
               std::vector<SampledProcess>{}}};
    }
    return {{{{"nvidia", 0, {}, {}, "Fake H100", "GPU-1111", "0000:65:00.0", 1000 * kMiB}, {}},
             {0, {}, 300 * kMiB, 20 * kMiB, 37, 41, 71500},
             processes},
            {{{"nvidia", 1, {}, {}, "Fake A100", "GPU-2222", "0000:b3:00.0", 500 * kMiB}, true},
             {0, {}, 0, 10 * kMiB, {}, {}, {}},
             std::nullopt},
            {{{"nvidia", 1, 1, {}, "Fake A100 MIG 1g.5gb", "MIG-3333", "0000:b3:00.0", 100 * kMiB}, {}},
             {0, {}, 4 * kMiB, 0, {}, {}, {}},
             std::vector<SampledProcess>{listed(80, 4 * kMiB)}}};
  }

  bool lose_first() override {
    folder_.write("lost", "");
    return true;
  }

  bool silence_first() override {
    json& returns = script_["devices"][0]["returns"];
    for (const char* function : {"nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2",
                                 "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetTemperature", "nvmlDeviceGetPowerUsage",
                                 "nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetComputeRunningProcesses_v3",
                                 "nvmlDeviceGetGraphicsRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses_v3"}) {
      returns[function] = 3;  // NOT_SUPPORTED
    }
    return true;
  }

 private:
  TemporaryFolder folder_;
  bool old_;
  json script_;
};

/// Folders like /sys and /proc.
class FakeKernel : public DeviceMachine {
 protected:
  /// /sys/class/drm/cardN, with its PCI device.
  std::string add_card(int number, const std::string& bus_id, const std::string& vendor, const std::string& device,
                       const std::string& driver) {
    const std::string pci = "sys/devices/pci0000:00/" + bus_id;
    folder_.write(pci + "/vendor", vendor + "\n");
    folder_.write(pci + "/device", device + "\n");
    fs::create_directories(folder_.at("sys/bus/pci/drivers/" + driver));
    fs::create_directory_symlink(folder_.at("sys/bus/pci/drivers/" + driver), folder_.at(pci + "/driver"));
    const std::string card = "sys/class/drm/card" + std::to_string(number);
    fs::create_directories(folder_.at(card));
    fs::create_directories(folder_.at(card + "-HDMI-A-1"));
    fs::create_directory_symlink(folder_.at(pci), folder_.at(card + "/device"));
    return pci;
  }

  /// An open file of a process.
  void add_file(int pid, int descriptor, const std::string& target, const std::string& fdinfo) {
    const std::string process = "proc/" + std::to_string(pid);
    folder_.write(process + "/fdinfo/" + std::to_string(descriptor), "pos:\t0\nflags:\t02100002\n" + fdinfo);
    fs::create_directories(folder_.at(process + "/fd"));
    fs::create_symlink(target, folder_.at(process + "/fd/" + std::to_string(descriptor)));
  }

  std::unique_ptr<DeviceSource> open_source(const std::string& vendor) {
    for (OpenedSource& opened : open_device_sources({folder_.path(), "nowhere/libnvidia-ml.so.1"})) {
      if (opened.vendor == vendor) return std::move(opened.source);
    }
    return nullptr;
  }

  TemporaryFolder folder_;
};

class FakeAmd final : public FakeKernel {
 public:
  FakeAmd() {
    first_ = add_card(1, "0000:c1:00.0", "0x1002", "0x74a1", "amdgpu");
    for (const auto& [name, text] :
         std::vector<std::pair<std::string, std::string>>{{"mem_info_vram_total", "206141652992\n"},
                                                          {"mem_info_vram_used", "297938944\n"},
                                                          {"gpu_busy_percent", "12\n"},
                                                          {"product_name", "AMD Instinct MI300X\n"},
                                                          {"unique_id", "2c3a9b\n"},
                                                          {"hwmon/hwmon4/temp1_input", "47000\n"},
                                                          {"hwmon/hwmon4/power1_average", "140000000\n"}}) {
      folder_.write(first_ + "/" + name, text);
    }
    folder_.write(add_card(2, "0000:c2:00.0", "0x1002", "0x744c", "amdgpu") + "/mem_info_vram_total", "1024\n");
    add_card(3, "0000:01:00.0", "0x10de", "0x2330", "nvidia");
    const std::string info = "drm-driver:\tamdgpu\ndrm-pdev:\t0000:c1:00.0\n";
    add_file(90, 7, "/dev/dri/renderD128", info + "drm-client-id:\t5\ndrm-memory-vram:\t1024 KiB\n");
    add_file(90, 8, "/dev/dri/renderD128", info + "drm-client-id:\t5\ndrm-memory-vram:\t1024 KiB\n");
    add_file(90, 9, "/dev/dri/renderD128", info + "drm-client-id:\t6\ndrm-memory-vram:\t16 MiB\n");
    add_file(91, 3, "/dev/dri/card1", info + "drm-client-id:\t7\n");
    add_file(92, 3, "/tmp/file", info + "drm-client-id:\t8\ndrm-memory-vram:\t5 KiB\n");
  }
  std::unique_ptr<DeviceSource> open() override { return open_source("amd"); }
  [[nodiscard]] std::vector<ExpectedDevice> expected() const override {
    return {{{{"amd", 1, {}, {}, "AMD Instinct MI300X", "2c3a9b", "0000:c1:00.0", 206141652992}, {}},
             {0, {}, 297938944, {}, 12, 47, 140000},
             std::vector<SampledProcess>{listed(90, 17 * kMiB), listed(91, std::nullopt)}},
            {{{"amd", 2, {}, {}, "AMD GPU 0x744c", "", "0000:c2:00.0", 1024}, {}},
             {0, {}, {}, {}, {}, {}, {}},
             std::vector<SampledProcess>{}}};
  }
  bool lose_first() override { return fs::remove_all(folder_.at(first_)) != 0; }
  bool silence_first() override {
    for (const char* name : {"mem_info_vram_used", "gpu_busy_percent", "hwmon"}) {
      fs::remove_all(folder_.at(first_ + "/" + name));
    }
    folder_.write(first_ + "/mem_info_vram_total", "not a number\n");
    fs::remove_all(folder_.at("proc"));
    return true;
  }

 private:
  std::string first_;
};

class FakeIntel final : public FakeKernel {
 public:
  FakeIntel() {
    first_ = add_card(0, "0000:03:00.0", "0x8086", "0xe20b", "xe");
    folder_.write(first_ + "/tile0/physical_vram_size_bytes", "8589934592\n");
    folder_.write(first_ + "/tile1/physical_vram_size_bytes", "8589934592\n");
    add_card(1, "0000:04:00.0", "0x8086", "0x56a0", "i915");
    add_file(60, 4, "/dev/dri/renderD128",
             "drm-driver:\txe\ndrm-client-id:\t3\ndrm-pdev:\t0000:03:00.0\ndrm-total-system:\t9 KiB\n"
             "drm-total-vram0:\t2048 KiB\n");
    add_file(61, 4, "/dev/dri/renderD129",
             "drm-driver:\ti915\ndrm-client-id:\t3\ndrm-pdev:\t0000:04:00.0\ndrm-total-local0:\t77\n");
  }
  std::unique_ptr<DeviceSource> open() override { return open_source("intel"); }
  [[nodiscard]] std::vector<ExpectedDevice> expected() const override {
    return {{{{"intel", 0, {}, {}, "Intel GPU 0xe20b", "", "0000:03:00.0", 17179869184}, {}},
             {0, {}, {}, {}, {}, {}, {}},
             std::vector<SampledProcess>{listed(60, 2 * kMiB)}},
            {{{"intel", 1, {}, {}, "Intel GPU 0x56a0", "", "0000:04:00.0", {}}, {}},
             {0, {}, {}, {}, {}, {}, {}},
             std::vector<SampledProcess>{listed(61, 77)}}};
  }
  bool lose_first() override { return fs::remove_all(folder_.at(first_)) != 0; }
  bool silence_first() override {
    fs::remove_all(folder_.at(first_ + "/tile0"));
    fs::remove_all(folder_.at(first_ + "/tile1"));
    fs::remove_all(folder_.at("proc"));
    return true;
  }

 private:
  std::string first_;
};

}  // namespace

std::vector<MachineKind> device_machines() {
  return {{"nvml", [] { return std::make_unique<RealNvml>(); }},
          {"fake_nvml", [] { return std::make_unique<FakeNvml>(false); }},
          {"fake_old_nvml", [] { return std::make_unique<FakeNvml>(true); }},
          {"fake_amd", [] { return std::make_unique<FakeAmd>(); }},
          {"fake_intel", [] { return std::make_unique<FakeIntel>(); }}};
}

}  // namespace tidemark::testing
