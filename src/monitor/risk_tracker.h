// Keeps the assessments of a MachineState up to date.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/forecast/forecaster.h"
#include "collect/recorder/sampling/sample_taker.h"
#include "monitor/machine_state.h"

namespace tidemark {

/// One memory, whose samples become a forecast.
struct TrackedMemory {
  Forecaster forecaster;
  std::uint64_t samples = 0;  ///< taken
  // Steps of one process after the other, counted on.
  std::int64_t pid = -1;
  std::uint64_t its_steps = 0;  ///< as of the latest sample
  std::uint64_t steps = 0;

  /// Takes the latest sample where it is new. `of`: steps of who has most of the memory; null: not known.
  void take(const WatchedUsage& used, const ProcessSteps* of);
};

/// One thread at a time.
class RiskTracker {
 public:
  explicit RiskTracker(const ForecastOptions& options) : options_(options), host_{Forecaster(options)} {}

  /// Takes the samples that are new since the last call: one of each memory at most.
  void add(const MachineState& state);
  /// Assesses what is due: every second, less often where that would take more than a five-hundredth of a core. `now`:
  /// due or not. True when it has.
  bool assess(MachineState& state, bool now = false);

 private:
  ForecastOptions options_;
  std::vector<TrackedMemory> devices_;  ///< by position in MachineState::devices
  TrackedMemory host_;
  Pace pace_{std::chrono::seconds(1), 500};
};

}  // namespace tidemark
