// Settings of the allocator that are worth trying, replayed for the advice of an analysis: its option --simulate.
#pragma once

#include <functional>
#include <string>

#include "analyze/common/analysis_options.h"
#include "query/analyses/analysis.h"
#include "query/open_recording.h"

namespace tidemark {

/// Sets AnalysisOptions::simulate as the option says, where the analysis has it. `automatic`: whether "auto" is
/// "pytorch": starting an interpreter takes seconds, which only somebody at a terminal waits for. `failed` is told why
/// a replay that was asked for cannot be done. `python`: the interpreter whose PyTorch replays; empty: python3.
void choose_simulation(const Analysis& analysis, bool automatic, const ProgressFor& progress,
                       const std::function<void(const std::string&)>& failed, AnalysisOptions& chosen,
                       const std::string& python = "");

}  // namespace tidemark
