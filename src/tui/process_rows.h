// The list of processes: one row for each device that a process has memory of.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "monitor/machine_state.h"

namespace tidemark::tui {

enum class ProcessOrder : unsigned char { device = 0, device_bytes = 1, rss = 2, pid = 3, name = 4 };
inline constexpr std::array<const char*, 5> kProcessOrders = {"device", "memory", "rss", "pid", "name"};

struct ProcessRow {
  const WatchedProcess* process = nullptr;
  const ProcessOnDevice* device = nullptr;  ///< null: it uses no device
};

/// Processes that have not ended. By device: highest use of its memory first; by resident memory among equal ones.
/// Points into `machine`.
[[nodiscard]] std::vector<ProcessRow> process_rows(const MachineState& machine, ProcessOrder order);

}  // namespace tidemark::tui
