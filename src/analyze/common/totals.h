// Allocated, active and reserved bytes of each device, change by change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "store/store.h"

namespace tidemark {

/// State of a device from `time_ns` until its next.
struct DeviceTotals {
  std::size_t device = 0;  ///< index into Overview::devices
  std::uint64_t time_ns = 0;
  std::uint64_t change_count = 0;  ///< number of Store::live_changes up to then
  std::uint64_t allocated_bytes = 0;
  std::optional<std::uint64_t> active_bytes;  ///< nullopt if unknown (recordings)
  std::optional<std::uint64_t>
      reserved_bytes;  ///< nullopt if the allocator reports none (CPU), and before its first report
};

/// Calls `visit` after every event that changed something, in order of time: of several events at one time, after each.
void walk_totals(const Store& store, const std::function<void(const DeviceTotals&)>& visit);

}  // namespace tidemark
