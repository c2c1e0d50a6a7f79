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
  bool real = false;                 ///< on the GPU of this machine, which `gpus` has one entry for
  std::vector<std::string> options;  ///< further ones of each `tidemark plan` or `run`, as words
  std::string folder;                ///< for the trials: what is there is not run again
  std::size_t jobs = 0;              ///< trials at a time; 0: as many as cores and host memory allow, one on a real GPU
  std::size_t budget = 0;            ///< trials to run at most in this call, those that say most; 0: all
  bool retry = false;                ///< runs those again that failed
  KeepsCombination keeps;            ///< empty: all combinations
  /// Looks at the files in `folder` of a trial that has ended; an error is why it failed.
  std::function<Result<void>(const std::string& folder)> check;
};

struct SweepProgress {
  std::size_t done = 0;  ///< of `total`, those of earlier calls too
  std::size_t total = 0;
  std::size_t running = 0;
  std::uint64_t left_ns = 0;           ///< how long the rest takes; 0: not known
  const SweepRow* finished = nullptr;  ///< the trial that has just ended; null: time has passed
};

struct SweepOutcome {
  Sweep sweep;         ///< with predictions for what has not run
  int stopped_by = 0;  ///< the signal that ended it before its end; 0: none did
};

/// Fails where the folder cannot be used, or no trial can be started. A trial that fails is a result.
Result<SweepOutcome> run_sweep(const SweepRequest& request,
                               const std::function<void(const Sweep&, const SweepProgress&)>& show);

}  // namespace tidemark
