// Keeps the assessments of a MachineState up to date: of each memory, and of what each process has of it.
#pragma once

#include <chrono>
#include <cstddef>
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

/// Forecasts of what each process has of each device, and of its RSS: who it is that makes a memory run out. One thread
/// at a time. A memory that is tracked takes up to 140 KiB after three weeks.
class ProcessRisks {
 public:
  static constexpr std::size_t kMaxMemories = 64;  ///< memories; the first that are seen

  explicit ProcessRisks(const ForecastOptions& options) : options_(options) {}

  /// Takes the samples that are new since the last call, of processes that have not ended.
  void add(const MachineState& state);
  /// Assesses what is due, as RiskTracker does. What is no longer there keeps its last assessment.
  void assess(MachineState& state, bool now = false);

 private:
  struct OfProcess {
    std::int64_t pid = -1;
    std::uint64_t first_seen_ns = 0;  ///< PIDs are used again
    std::size_t device = 0;           ///< position in MachineState::devices; kRss: its RSS
    TrackedMemory memory;
  };
  static constexpr std::size_t kRss = ~std::size_t{0};

  void take(const WatchedProcess& process, std::size_t device, const WatchedUsage& used, const ProcessSteps* steps);
  OfProcess* find(const WatchedProcess& process, std::size_t device);

  ForecastOptions options_;
  std::vector<OfProcess> tracked_;
  Pace pace_{std::chrono::seconds(1), 500};
};

}  // namespace tidemark
