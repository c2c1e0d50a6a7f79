// What a trial is started with, and what its files say when it has ended.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/sweep/trial.h"
#include "base/result.h"
#include "launch/background_process.h"
#include "launch/stop_signals.h"

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

}  // namespace tidemark
