// The largest value of one argument with which a program fits on a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analyze/sweep/trial.h"

namespace tidemark {

/// `low`, `low` + `step`, … up to `high`.
struct ValueRange {
  std::uint64_t low = 1;
  std::uint64_t high = 1;
  std::uint64_t step = 1;
};

struct FitTrial {
  std::uint64_t value = 0;
  TrialResult result;
};

struct Fit {
  std::string name;    ///< of the argument: "batch"
  std::string option;  ///< "--batch-size"
  ValueRange range;
  std::string gpu;
  std::uint64_t memory_bytes = 0;         ///< of each device
  double margin_share = 0;                ///< of the memory that must stay free
  std::uint64_t limit_bytes = 0;          ///< memory minus the margin: limit of the trials
  std::vector<FitTrial> trials;           ///< in execution order
  bool stopped = false;                   ///< before the answer was certain
  std::vector<std::string> command = {};  ///< the program with the largest value that fits; empty if none does

  /// The largest value that was tried and fits.
  [[nodiscard]] std::optional<std::uint64_t> largest() const;
  /// False if a larger value took less memory than a smaller one: then untried values are unknown.
  [[nodiscard]] bool monotone() const;
  /// Whether all values, several, took the same memory to the byte. If they fit, the program ignores the argument. If
  /// they do not, it may also fail before it uses the argument.
  [[nodiscard]] bool all_alike() const;
};

/// The most informative next value, given the trials so far; nullopt when the answer is known. Memory is assumed to
/// grow with the value: the largest value that fits and the smallest that does not enclose the answer. Within them, a
/// polynomial of degree 1 or 2 through measured peaks predicts where the limit is reached; if it misleads, the interval
/// is halved. A failed trial counts as one that does not fit.
[[nodiscard]] std::optional<std::uint64_t> next_value(const Fit& fit);

/// Runs trials until the answer is known, or until `run` returns nullopt. If the lowest value does not fit, a second
/// one is tried, for Fit::all_alike().
void find_largest(Fit& fit, const std::function<std::optional<TrialResult>(std::uint64_t value)>& run);

}  // namespace tidemark
