// The result of a trial on a real GPU: from the recordings of its processes.
#pragma once

#include <string>

#include "analyze/sweep/trial.h"
#include "launch/background_process.h"

namespace tidemark {

/// Of the recordings in `folder`. Without a result where the program failed otherwise than for memory, or allocated
/// nothing on a GPU.
[[nodiscard]] TrialResult read_recordings(const std::string& folder, const ProcessEnd& end);

}  // namespace tidemark
