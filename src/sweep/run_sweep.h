// Runs the trials of a sweep, several at a time, and keeps their results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "analyze/sweep/sweep.h"
#include "base/result.h"
#include "sweep/arguments.h"

namespace tidemark {

/// More configurations than these, on all GPUs, are a mistake.
inline constexpr std::size_t kMaxRows = 4096;

struct SweepRequest {
  VariedProgram program;
  std::vector<SweptGpu> gpus;
  bool real = false;                 ///< on the GPU of this machine, the only entry of `gpus`
  std::vector<std::string> options;  ///< further ones of each `tidemark plan` or `run`, as words
  std::string folder;                ///< for the trials: existing ones are not run again
  std::size_t jobs = 0;              ///< trials at a time; 0: as many as cores and host memory allow, one on a real GPU
  std::size_t budget = 0;            ///< maximum number of trials in this call, the most informative ones; 0: all
  bool retry = false;                ///< runs failed trials again
  KeepsCombination keeps;            ///< empty: all combinations
  /// Looks at the files in `folder` of a trial that has ended; an error is why it failed.
  std::function<Result<void>(const std::string& folder)> check;
};

struct SweepProgress {
  std::size_t done = 0;  ///< out of `total`, including earlier calls
  std::size_t total = 0;
  std::size_t running = 0;
  std::uint64_t left_ns = 0;           ///< estimated time of the rest; 0: unknown
  const SweepRow* finished = nullptr;  ///< the trial that has just ended; null: time has passed
};

struct SweepOutcome {
  Sweep sweep;         ///< with predictions for rows that have not run
  int stopped_by = 0;  ///< the signal that ended it early; 0: none
};

/// Fails if the folder cannot be used, or no trial can be started. A failed trial is a result.
Result<SweepOutcome> run_sweep(const SweepRequest& request,
                               const std::function<void(const Sweep&, const SweepProgress&)>& show);

}  // namespace tidemark
