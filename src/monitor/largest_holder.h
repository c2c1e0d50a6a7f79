// Who has most of a memory.
#pragma once

#include <cstdint>
#include <optional>

#include "monitor/machine_state.h"

namespace tidemark {

struct MemoryHolder {
  WatchedProcess process;  ///< who it is; not what it has, or had
  std::uint64_t bytes = 0;
};

/// The process that has most of a device; of the host, by its PSS or else RSS, where `device` is null. None where
/// nobody has a tenth of what is used: it is not what fills the memory.
[[nodiscard]] std::optional<MemoryHolder> largest_holder(const MachineState& state, const WatchedDevice* device);

}  // namespace tidemark
