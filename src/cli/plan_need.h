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

/// The smallest memory of a planned device: its context takes most of it.
inline constexpr std::uint64_t kMinPlannedMemory = std::uint64_t{256} << 20;

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

/// Plans the program without a limit of memory, and if it does not fit, with changes of its command, as find_need()
/// does. Empty if it fits, if no change is enough, or on Ctrl-C; the first of these is a line on stderr. Fails if the
/// program cannot be planned.
[[nodiscard]] Result<std::vector<PlannedChange>> plan_changes(const NeedRequest& request);

}  // namespace tidemark::cli
