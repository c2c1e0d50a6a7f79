// Shared by the sources for AMD and Intel: cards in /sys/class/drm, processes in /proc/PID/fdinfo.
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
  std::string driver;  ///< "amdgpu", "xe", "i915"; empty if it cannot be read
};

/// The cards of a PCI vendor (0x1002 AMD, 0x8086 Intel), by number.
[[nodiscard]] std::vector<DrmCard> find_cards(const std::string& root, std::uint64_t vendor);

/// The processes that have the card open, and their memory: the sum of the values of `keys` ("drm-memory-vram") over
/// the process's open files, each client of the driver once. Only root sees processes of other users.
[[nodiscard]] std::vector<SampledProcess> card_processes(const std::string& root, const std::string& bus_id,
                                                         const std::vector<std::string>& keys);

/// An error that names the card if it is no longer in /sys.
[[nodiscard]] Result<void> check_card(const DrmCard& card, const char* vendor);

}  // namespace tidemark
