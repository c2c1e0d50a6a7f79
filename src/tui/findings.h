// What there is to say about a machine and its recorded processes, worst first.
#pragma once

#include <vector>

#include "monitor/machine_state.h"
#include "tui/view.h"

namespace tidemark::tui {

/// Risks from medium on, drivers that do not work, devices that are lost, processes that the OOM killer ended; then
/// what was found in recorded processes.
[[nodiscard]] std::vector<Finding> findings_of(const Content& content);

}  // namespace tidemark::tui
