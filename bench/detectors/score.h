// Scores of a monitor on labelled runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/forecast/forecaster.h"
#include "labelled_run.h"
#include "monitors.h"

namespace tidemark::detectors {

/// Calibration of assessments with a confidence, by level and class of evidence.
struct Calibration {
  struct Cell {
    std::uint64_t assessments = 0;
    std::uint64_t right = 0;
    double confidence = 0;  ///< sum
  };
  std::array<std::array<Cell, kEvidenceClasses>, 4> cells = {};
  std::uint64_t intervals = 0;  ///< of the time to the limit, at alarms on runs with a known limit
  std::uint64_t inside = 0;     ///< intervals that contain the true time
};

/// One monitor on one run. Times are seconds.
struct Outcome {
  std::optional<double> alarm_at;   ///< the first one
  std::optional<double> predicted;  ///< the predicted time to the limit
  std::uint64_t alarms = 0;         ///< number of alarms begun
  std::optional<double> leak_at;
  std::optional<double> leak_before;  ///< a leak found before there was one
};

/// An alarm is right if the limit is reached within this many horizons after it.
inline constexpr double kRightWithin = 1.5;

/// Feeds the run sample by sample, and assesses once a second (at each sample if they come slower).
[[nodiscard]] Outcome watch(const LabelledRun& run, Monitor& monitor, Calibration& calibration);

/// The score of one monitor over all runs.
struct Score {
  std::string monitor;
  std::uint64_t runs = 0;
  // Out of memory. Runs whose growth was visible for 90 s, or 40 steps if steps are known, before the limit could be
  // foreseen.
  std::uint64_t foreseeable = 0;
  std::uint64_t foreseen = 0;
  std::uint64_t in_time = 0;     ///< 60 s or 20 steps before
  std::uint64_t right_runs = 0;  ///< with a right alarm, foreseeable or not
  std::uint64_t false_runs = 0;  ///< with a false alarm
  std::uint64_t false_alarms = 0;
  double healthy_hours = 0;
  std::vector<double> lead_seconds;
  std::vector<double> lead_steps;
  std::vector<double> errors;  ///< of the predicted time, as a share of the true one
  // Leaks that existed for at least two minutes.
  std::uint64_t leaking = 0;
  std::uint64_t leaks_found = 0;
  std::uint64_t false_leaks = 0;
  std::uint64_t undecidable = 0;
  std::uint64_t undecidable_found = 0;
  std::vector<double> leak_delay;  ///< seconds after it began
  Calibration calibration;

  [[nodiscard]] double recall() const;
  [[nodiscard]] double precision() const;
  [[nodiscard]] double leak_recall() const;
  [[nodiscard]] double leak_precision() const;
};

/// Adds an outcome. Returns its error for debugging, "false alarm at 120 s"; empty if none.
[[nodiscard]] std::string add_outcome(const LabelledRun& run, const Outcome& outcome, Score& score);

}  // namespace tidemark::detectors
