// A machine with two GPUs, a recorded training job, and a process of another user, for the views.
#pragma once

#include "monitor/machine_state.h"
#include "tui/view.h"

namespace tidemark::testing {

inline constexpr std::uint64_t kSecondNs = 1'000'000'000;

/// After 200 seconds. GPU 0 grows by 0.1 GiB a second and is at high risk, GPU 1 is steady.
[[nodiscard]] MachineState busy_machine();
/// No GPU; the host's memory stands for one.
[[nodiscard]] MachineState host_only();
/// The job of busy_machine(), with holders and findings.
[[nodiscard]] std::vector<tui::ProcessResults> recorded_job();

}  // namespace tidemark::testing
