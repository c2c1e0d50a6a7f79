// The result of a trial on a real GPU: from the recordings of its processes.
#pragma once

#include <string>
#include <vector>

#include "analyze/sweep/trial.h"
#include "launch/background_process.h"

namespace tidemark {

/// Of the recordings in `folder`. Without a result where the program failed otherwise than for memory, or allocated
/// nothing on a GPU.
[[nodiscard]] TrialResult read_recordings(const std::string& folder, const ProcessEnd& end);

/// Of the recordings in `folder`: what the device with the highest peak holds then. Empty where that is not known.
[[nodiscard]] std::vector<HeldByCategory> categories_at_peak(const std::string& folder);

}  // namespace tidemark
