// The command of a job's next attempt, with a change of its verdict applied to the arguments that the user named.
#pragma once

#include <string>
#include <vector>

#include "analyze/restart/restart.h"
#include "analyze/sweep/trial.h"
#include "base/result.h"

namespace tidemark {

/// "batch=--batch-size": NAME=OPTION, of which NAME is batch, accumulation or checkpointing.
[[nodiscard]] Result<std::vector<VariedArgument>> parse_applied(const std::vector<std::string>& texts);

/// Sets RestartVerdict::next_attempt by the first of its changes that is not known to be too little and that the
/// arguments allow: settings of the allocator always, a smaller batch with `batch` (with `accumulation`, so much
/// larger), planned checkpointing with `checkpointing`. Otherwise sets RestartVerdict::not_applied. `command`: the
/// program.
void apply_changes(const std::vector<VariedArgument>& arguments, const std::vector<std::string>& command,
                   RestartVerdict& verdict);

}  // namespace tidemark
