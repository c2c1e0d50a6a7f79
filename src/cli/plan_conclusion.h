// What a plan says of a program that has ended: the plan, or why there is none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/plan/plan.h"

namespace tidemark::cli {

/// How the run went, besides what a plan shows.
struct PlannedRun {
  PlanFacts facts;
  std::vector<std::string> files;         ///< recordings
  std::string why_nothing;                ///< why there are none
  bool steps_asked = true;                ///< whether the plan is of training steps, not of a whole program
  std::optional<int> ending_signal = {};  ///< of the program
  std::uint64_t oom_kills = 0;            ///< processes that the kernel has killed meanwhile for lack of memory
  bool kills_of_own_group = false;        ///< they were in the control group of this process; otherwise anywhere
  std::string own_runtime = {};           ///< path of a library that has a CUDA runtime of its own; empty: none
};

/// Prints the plan in `format`. The exit code: whether it fits. Where there is no plan it says why, and removes the
/// recordings: they would look like one.
int conclude(const PlannedRun& run, const std::string& format);

}  // namespace tidemark::cli
