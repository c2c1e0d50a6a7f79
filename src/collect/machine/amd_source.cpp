#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "collect/machine/device_source.h"
#include "collect/machine/drm_cards.h"
#include "collect/machine/files.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kAmdVendor = 0x1002;

/// The folder of the card's sensors, hwmonN.
std::string sensors_of(const DrmCard& card) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(card.folder + "/hwmon", error), end; !error && entry != end;
       entry.increment(error)) {
    return entry->path().string();
  }
  return "";
}

class AmdSource final : public DeviceSource {
 public:
  AmdSource(std::string root, std::vector<DrmCard> cards) : root_(std::move(root)), cards_(std::move(cards)) {
    for (const DrmCard& card : cards_) {
      DeviceInfo info;
      info.vendor = "amd";
      info.index = card.number;
      info.name = trimmed(read_file(card.folder + "/product_name").value_or(""));
      if (info.name.empty()) info.name = "AMD GPU " + trimmed(read_file(card.folder + "/device").value_or(""));
      info.uuid = trimmed(read_file(card.folder + "/unique_id").value_or(""));
      info.bus_id = card.bus_id;
      info.total_bytes = read_number(card.folder + "/mem_info_vram_total");
      devices_.push_back(std::move(info));
      sensors_.push_back(sensors_of(card));
    }
  }

  [[nodiscard]] std::string driver() const override { return "amdgpu"; }
  [[nodiscard]] const std::vector<DeviceInfo>& devices() const override { return devices_; }

  Result<DeviceSample> read(std::size_t device) override {
    if (auto there = check(device); !there) return there.error();
    const std::string& folder = cards_[device].folder;
    DeviceSample sample;
    sample.used_bytes = read_number(folder + "/mem_info_vram_used");
    if (const auto busy = read_number(folder + "/gpu_busy_percent")) {
      sample.utilization_percent = static_cast<std::uint32_t>(*busy);
    }
    if (const auto millicelsius = read_number(sensors_[device] + "/temp1_input")) {
      sample.temperature_celsius = static_cast<std::int32_t>(*millicelsius / 1000);
    }
    auto microwatts = read_number(sensors_[device] + "/power1_average");
    if (!microwatts) microwatts = read_number(sensors_[device] + "/power1_input");
    if (microwatts) sample.power_milliwatts = static_cast<std::uint32_t>(*microwatts / 1000);
    return sample;
  }

  Result<std::optional<std::vector<SampledProcess>>> processes(std::size_t device) override {
    if (auto there = check(device); !there) return there.error();
    return std::optional(card_processes(root_, cards_[device].bus_id, {"drm-memory-vram"}));
  }

 private:
  [[nodiscard]] Result<void> check(std::size_t device) const {
    if (device >= cards_.size()) return Error{fmt::format("there is no AMD device {}", device)};
    return check_card(cards_[device], "AMD");
  }

  std::string root_;
  std::vector<DrmCard> cards_;
  std::vector<std::string> sensors_;  // folders
  std::vector<DeviceInfo> devices_;
};

}  // namespace

/// amdgpu: everything from sysfs (Documentation/gpu/amdgpu/driver-misc.rst), processes from drm-memory-vram.
OpenedSource open_amd_source(const SourcePlaces& places) {
  OpenedSource opened;
  opened.vendor = "amd";
  std::vector<DrmCard> cards = find_cards(places.root, kAmdVendor);
  std::erase_if(cards, [](const DrmCard& card) { return card.driver != "amdgpu"; });
  if (cards.empty()) {
    opened.absent = "no AMD GPU with the amdgpu driver";
  } else {
    opened.source = std::make_unique<AmdSource>(places.root, std::move(cards));
  }
  return opened;
}

}  // namespace tidemark
