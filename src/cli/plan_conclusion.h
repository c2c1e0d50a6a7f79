// What a plan says of a program that has ended: the plan, or why there is none.
#pragma once

#include <string>
#include <vector>

#include "analyze/plan.h"

namespace tidemark::cli {

/// How the run went, besides what a plan shows.
struct PlannedRun {
  PlanFacts facts;
  std::vector<std::string> files;  ///< recordings
  std::string why_nothing;         ///< why there are none
  bool steps_asked = true;         ///< whether the plan is of training steps, not of a whole program
  bool out_of_host_memory = false;
};

/// Prints the plan in `format`. The exit code: whether it fits. Where there is no plan it says why, and removes the
/// recordings: they would look like one.
int conclude(PlannedRun run, const std::string& format);

}  // namespace tidemark::cli
