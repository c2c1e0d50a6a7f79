// What a trial is started with, and what its files say when it has ended.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/sweep/trial.h"
#include "base/result.h"
#include "launch/background_process.h"
#include "launch/passed_signals.h"

namespace tidemark {

struct TrialRequest {
  std::string gpu;                   ///< to plan for; empty: a real GPU
  std::vector<std::string> options;  ///< further ones of `tidemark plan`, as words
  std::vector<std::string> command;  ///< the program
};

/// Starts a trial: this program once more, with other arguments. Its recordings, its stdout (result.json) and its
/// stderr (output.log) are files in `folder`, which exists.
[[nodiscard]] Result<BackgroundProcess> start_trial(const TrialRequest& request, const std::string& folder);

/// The result in `folder` of a trial that has ended. What failed is a result too.
[[nodiscard]] TrialResult read_trial(const TrialRequest& request, const std::string& folder, const ProcessEnd& end);

/// Runs a trial to its end. None where a signal came meanwhile: the trial was ended. An error: no trial can be started.
[[nodiscard]] Result<std::optional<TrialResult>> run_trial(const TrialRequest& request, const std::string& folder,
                                                           StopSignals& signals);

/// The last MiB of a file, as programs may write much; empty where it cannot be read.
[[nodiscard]] std::string end_of_file(const std::string& path);

/// Of the recordings in `folder`. Without a result where the program failed otherwise than for memory, or allocated
/// nothing on a GPU.
[[nodiscard]] TrialResult read_recordings(const std::string& folder, const ProcessEnd& end);

/// Of the recordings in `folder`: what the device with the highest peak holds then. Empty where that is not known.
[[nodiscard]] std::vector<HeldByCategory> categories_at_peak(const std::string& folder);

}  // namespace tidemark
