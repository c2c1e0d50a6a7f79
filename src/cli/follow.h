// --follow: an analysis of a recording in progress, printed again while it grows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/common/analysis_options.h"
#include "base/result.h"
#include "cli/command.h"
#include "query/analyses/analysis.h"

namespace tidemark::cli {

struct FollowArguments {
  bool follow = false;
  double interval_ms = 2000;
  std::uint64_t pid = 0;  ///< 0: not given
};
void add_follow(CommandLine& app, FollowArguments& arguments);

/// What is done with each state of the recording.
struct FollowedAnalysis {
  const Analysis& analysis;
  AnalysisOptions& chosen;
  std::string format;
  std::string output;  ///< file, replaced each time; empty or "-": stdout
};

/// Until the recording ends, or a signal (SIGINT, SIGTERM) does it: then too with the state of that moment. `files`:
/// one recording, or none: that of the process, or the only one of this user in progress. The exit code.
int follow(const FollowedAnalysis& what, const FollowArguments& arguments, const std::vector<std::string>& files);

}  // namespace tidemark::cli
