// What a planned program that does not fit needs, and which changes make it fit: found by further plans.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/plan/plan.h"
#include "base/result.h"
#include "sweep/trials.h"

namespace tidemark::cli {

/// Reads the recordings of a plan. `with_owners`: with categories and advice, which take longer to read.
[[nodiscard]] Result<std::vector<PlannedRecording>> read_planned(const std::vector<std::string>& files,
                                                                 bool with_owners);

struct NeedRequest {
  TrialRequest trial;              ///< the plan, without options of memory
  std::uint64_t memory_bytes = 0;  ///< of each GPU
  std::uint64_t ranks = 1;         ///< of --nproc
};

/// Plans the program again without a limit of memory, and then with changes of its command (find_fitting_changes).
/// Each plan is a line on stderr. Ctrl-C ends the search: the result contains what was found until then. std::nullopt
/// if what it needs could not be found.
[[nodiscard]] std::optional<PlanNeed> find_need(const Plan& plan, const NeedRequest& request);

}  // namespace tidemark::cli
