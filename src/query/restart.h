// The verdict on a restart, from files: for the command and for Python.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analyze/plan/simulation.h"
#include "analyze/restart/restart.h"
#include "base/result.h"
#include "query/recording.h"

namespace tidemark {

struct RestartRequest {
  std::vector<std::string> paths;  ///< recordings, and folders of recordings, of which the newest attempt is used
  ProgressFor progress = {};
  /// As AnalysisOptions::simulate; may be empty.
  std::function<std::optional<Simulation>(const Store& store, const Symbols& symbols)> simulate = {};
};

/// Reads the totals of each recording, and all of the one that ran out of memory first, in a memory that does not grow
/// with the number of recordings. Fails, naming the file, for files that are no recordings, and for folders without
/// one.
Result<RestartVerdict> judge_restart(const RestartRequest& request);

}  // namespace tidemark
