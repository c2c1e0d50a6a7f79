#include "plan/phantom_source.h"

#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <utility>

#include "collect/machine/processes.h"
#include "phantom/gpu/memory.h"
#include "phantom/gpu/visible_devices.h"

namespace tidemark {
namespace {

class PhantomSource : public DeviceSource {
 public:
  PhantomSource(std::string folder, const PhantomOptions& options)
      : folder_(std::move(folder)), context_bytes_(options.gpu.context_bytes) {
    for (int number = 0; number < options.devices; ++number) {
      DeviceInfo& device = devices_.emplace_back();
      device.vendor = "nvidia";
      device.index = static_cast<std::uint32_t>(number);
      device.name = options.gpu.full_name;
      device.uuid = phantom::device_uuid(number);
      device.total_bytes = options.memory_bytes;
    }
  }

  [[nodiscard]] const std::vector<DeviceInfo>& devices() const override { return devices_; }

  Result<DeviceSample> read(std::size_t device) override {
    DeviceSample sample;
    sample.used_bytes = 0;
    for (const SampledProcess& process : processes_of(device)) *sample.used_bytes += *process.bytes;
    return sample;
  }

  Result<std::optional<std::vector<SampledProcess>>> processes(std::size_t device) override {
    return std::optional(processes_of(device));
  }

 private:
  [[nodiscard]] std::vector<SampledProcess> processes_of(std::size_t device) const {
    std::vector<SampledProcess> found;
    std::ifstream table(folder_ + "/memory", std::ios::binary);
    phantom::MemoryTable::Process holder{};
    while (table.read(reinterpret_cast<char*>(&holder), sizeof holder) && holder.number != 0) {
      if (!holder.context[device] || !resident_bytes(holder.number)) continue;
      SampledProcess& process = found.emplace_back();
      process.pid = holder.number;
      process.bytes = context_bytes_ + holder.bytes[device];
    }
    return found;
  }

  std::string folder_;
  std::uint64_t context_bytes_;
  std::vector<DeviceInfo> devices_;
};

}  // namespace

std::unique_ptr<DeviceSource> make_phantom_source(const std::string& folder, const PhantomOptions& options) {
  return std::make_unique<PhantomSource>(folder, options);
}

}  // namespace tidemark
