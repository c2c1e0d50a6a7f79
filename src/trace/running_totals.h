// Totals of the events of a recording so far: with a frame of them, a reader that has fallen behind can skip events and
// still know the held memory and the peaks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trace/event.h"

namespace tidemark {

/// Totals of one device after the last of some events; peaks since the previous frame, including the value at that
/// time. Bytes.
struct DeviceRunningTotals {
  Device device;
  std::uint64_t live = 0;  ///< of the blocks that were recorded
  std::uint64_t peak_live = 0;
  // The allocator's own counters.
  bool has_totals = false;  ///< else the four are 0
  std::uint64_t allocated = 0;
  std::uint64_t peak_allocated = 0;
  std::uint64_t reserved = 0;
  std::uint64_t peak_reserved = 0;

  bool operator==(const DeviceRunningTotals&) const = default;
};

struct RunningTotals {
  std::uint64_t events = 0;                  ///< since the frame before
  std::uint64_t time_ns = 0;                 ///< of the last of them
  std::vector<DeviceRunningTotals> devices;  ///< all with blocks or totals so far

  bool operator==(const RunningTotals&) const = default;
};

/// The payload of a totals frame.
[[nodiscard]] std::vector<std::uint8_t> encode_totals(const RunningTotals& totals);
/// nullopt for invalid data. `payload` must have Frame::kPadding readable bytes after it.
[[nodiscard]] std::optional<RunningTotals> decode_totals(std::span<const std::uint8_t> payload);

}  // namespace tidemark
