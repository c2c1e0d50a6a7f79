// What a trial is started with, and what its files say when it has ended.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/sweep/trial.h"
#include "base/result.h"
#include "sweep/trial_process.h"

namespace tidemark {

struct TrialRequest {
  std::string gpu;                   ///< to plan for; empty: a real GPU
  std::vector<std::string> options;  ///< further ones of `tidemark plan`, as words
  std::vector<std::string> command;  ///< the program
};

/// What `tidemark` is called with, so that recordings are written to `folder`.
[[nodiscard]] std::vector<std::string> words_of(const TrialRequest& request, const std::string& folder);

/// The result in `folder` of a trial that has ended. What failed is a result too.
[[nodiscard]] TrialResult read_trial(const TrialRequest& request, const std::string& folder, const TrialEnd& end);

/// Runs a trial to its end in a folder that exists. None where a signal came meanwhile: the trial was ended. An error:
/// no trial can be started.
[[nodiscard]] Result<std::optional<TrialResult>> run_trial(const TrialRequest& request, const std::string& folder,
                                                           StopSignals& signals);

}  // namespace tidemark
