#include <fmt/format.h>

#include <utility>

#include "collect/machine/device_source.h"
#include "collect/machine/drm_cards.h"
#include "collect/machine/files.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kIntelVendor = 0x8086;
constexpr int kMaxTiles = 4;

/// Memory of all tiles, as reported by xe; std::nullopt for other drivers.
std::optional<std::uint64_t> memory_of(const DrmCard& card) {
  std::optional<std::uint64_t> total;
  for (int tile = 0; tile < kMaxTiles; ++tile) {
    const auto bytes = read_number(fmt::format("{}/tile{}/physical_vram_size_bytes", card.folder, tile));
    if (bytes) total = total.value_or(0) + *bytes;
  }
  return total;
}

class IntelSource final : public DeviceSource {
 public:
  IntelSource(std::string root, std::vector<DrmCard> cards) : root_(std::move(root)), cards_(std::move(cards)) {
    for (const DrmCard& card : cards_) {
      DeviceInfo info;
      info.vendor = "intel";
      info.index = card.number;
      info.name = "Intel GPU " + trimmed(read_file(card.folder + "/device").value_or(""));
      info.bus_id = card.bus_id;
      info.total_bytes = memory_of(card);
      devices_.push_back(std::move(info));
    }
  }

  [[nodiscard]] std::string driver() const override { return cards_.front().driver; }
  [[nodiscard]] const std::vector<DeviceInfo>& devices() const override { return devices_; }

  Result<DeviceSample> read(std::size_t device) override {
    if (auto there = check(device); !there) return there.error();
    return DeviceSample();
  }

  Result<std::optional<std::vector<SampledProcess>>> processes(std::size_t device) override {
    if (auto there = check(device); !there) return there.error();
    const char* key = cards_[device].driver == "xe" ? "drm-total-vram0" : "drm-total-local0";
    return std::optional(card_processes(root_, cards_[device].bus_id, {key}));
  }

 private:
  [[nodiscard]] Result<void> check(std::size_t device) const {
    if (device >= cards_.size()) return Error{fmt::format("there is no Intel device {}", device)};
    return check_card(cards_[device], "Intel");
  }

  std::string root_;
  std::vector<DrmCard> cards_;
  std::vector<DeviceInfo> devices_;
};

}  // namespace

/// xe and i915: processes from drm-total-vram0 and drm-total-local0 (Documentation/gpu/drm-usage-stats.rst). These
/// drivers do not report the total memory in use.
OpenedSource open_intel_source(const SourcePlaces& places) {
  OpenedSource opened;
  opened.vendor = "intel";
  std::vector<DrmCard> cards = find_cards(places.root, kIntelVendor);
  std::erase_if(cards, [](const DrmCard& card) { return card.driver != "xe" && card.driver != "i915"; });
  if (cards.empty()) {
    opened.absent = "no Intel GPU with the xe or i915 driver";
  } else {
    opened.source = std::make_unique<IntelSource>(places.root, std::move(cards));
  }
  return opened;
}

}  // namespace tidemark
