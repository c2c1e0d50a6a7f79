// A run of a program with a known outcome, for measuring monitors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/forecast/usage_history.h"

namespace tidemark::detectors {

enum class Leaks : std::uint8_t { no, yes, undecidable };

/// One memory over time, until the run ended or the limit was reached.
struct LabelledRun {
  std::string kind;
  std::vector<UsageSample> samples;
  std::uint64_t limit_bytes = 0;
  /// When a request failed, in seconds as in the samples: in the run (which ends there), or after its end if it had
  /// continued. std::nullopt: not within an hour after its end.
  std::optional<double> limit_at;
  bool ran_out = false;  ///< limit_at is in the run
  Leaks leaks = Leaks::no;
  double grows_from = 0;  ///< seconds; the beginning of the growth that leaks or reaches the limit
  double seconds_per_step = 0;

  [[nodiscard]] double begin() const { return static_cast<double>(samples.front().time_ns) / kNanosecondsPerSecond; }
  [[nodiscard]] double end() const { return static_cast<double>(samples.back().time_ns) / kNanosecondsPerSecond; }
};

}  // namespace tidemark::detectors
