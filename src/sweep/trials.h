// Starts trials, and reads their results from their files.
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

/// Starts a trial: this program again, with other arguments. Its recordings, its stdout (result.json) and its stderr
/// (output.log) are files in `folder`, which exists.
[[nodiscard]] Result<BackgroundProcess> start_trial(const TrialRequest& request, const std::string& folder);

/// The result in `folder` of a trial that has ended. A failure is a result too.
[[nodiscard]] TrialResult read_trial(const TrialRequest& request, const std::string& folder, const ProcessEnd& end);

/// Runs a trial to its end. nullopt if a signal ended the trial. Fails if no trial can be started.
[[nodiscard]] Result<std::optional<TrialResult>> run_trial(const TrialRequest& request, const std::string& folder,
                                                           StopSignals& signals);

/// The recordings in a trial's folder, sorted by path.
[[nodiscard]] std::vector<std::string> recordings_in(const std::string& folder);

/// The last MiB of a file, because programs may write much; empty if it cannot be read.
[[nodiscard]] std::string end_of_file(const std::string& path);

/// From the recordings in `folder`. Without a result if the program failed for another reason than memory, or allocated
/// nothing on a GPU.
[[nodiscard]] TrialResult read_recordings(const std::string& folder, const ProcessEnd& end);

/// From the recordings in `folder`: memory by category of the device with the highest peak, at that peak. Empty if
/// unknown.
[[nodiscard]] std::vector<HeldByCategory> categories_at_peak(const std::string& folder);

}  // namespace tidemark
