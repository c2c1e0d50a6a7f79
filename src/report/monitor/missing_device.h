// That a device was chosen which is not there.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>

#include "monitor/machine_state.h"

namespace tidemark {

/// An error of who chose; none where all are there, or it is not known yet.
[[nodiscard]] inline std::optional<std::string> missing_device_text(const MachineState& state) {
  if (state.missing_keys.empty()) return std::nullopt;
  return fmt::format("--devices {}: there is no such device here (there is {}); `tidemark devices` lists them",
                     state.missing_keys.front(), fmt::join(state.all_keys, ", "));
}

}  // namespace tidemark
