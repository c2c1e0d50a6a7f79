// The past as a machine's state, for what is drawn of one.
#pragma once

#include "monitor/machine_state.h"
#include "publish/history/history.h"

namespace tidemark {

/// With the devices and their use over time; the rest is not known. Times count from the first point,
/// whose time of day is MachineState::wall_ns(0).
[[nodiscard]] MachineState as_state(const History& history);

}  // namespace tidemark
