// What the sources for AMD and Intel share: cards in /sys/class/drm, processes in /proc/PID/fdinfo.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collect/machine/device_source.h"

namespace tidemark {

struct DrmCard {
  std::uint32_t number = 0;
  std::string folder;  ///< of the PCI device: /sys/class/drm/cardN/device
  std::string bus_id;
  std::string driver;  ///< "amdgpu", "xe", "i915"; empty when it cannot be read
};

/// The cards of a PCI vendor (0x1002 AMD, 0x8086 Intel), by number.
[[nodiscard]] std::vector<DrmCard> find_cards(const std::string& root, std::uint64_t vendor);

/// Who has the card open, and how much of its memory: the sum of the values of `keys` ("drm-memory-vram") over the
/// process's open files, each client of the driver once. Processes of other users are seen only by root.
[[nodiscard]] std::vector<SampledProcess> card_processes(const std::string& root, const std::string& bus_id,
                                                         const std::vector<std::string>& keys);

/// Whether the card is still in /sys; an error that names it otherwise.
[[nodiscard]] Result<void> check_card(const DrmCard& card, const char* vendor);

}  // namespace tidemark
