// Keeps the assessments of a MachineState up to date.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/forecast/forecaster.h"
#include "collect/recorder/sample_taker.h"
#include "live/machine_state.h"

namespace tidemark {

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
  struct Tracked {
    Forecaster forecaster;
    std::uint64_t samples = 0;  ///< taken
  };
  void take(Tracked& tracked, const WatchedUsage& used);

  ForecastOptions options_;
  std::vector<Tracked> devices_;  ///< by position in MachineState::devices
  Tracked host_;
  Pace pace_{std::chrono::seconds(1), 500};
};

/// The growth of a history, from its points: for processes, of which there may be many. No level but `low` without a
/// limit.
[[nodiscard]] RiskAssessment assess_history(const WatchedUsage& used, std::optional<std::uint64_t> limit_bytes = {},
                                            const ForecastOptions& options = {});

}  // namespace tidemark
