// Keeps the assessments of a MachineState up to date: for each memory, and for each process's use of it.
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

/// Makes a forecast from the samples of one memory.
struct TrackedMemory {
  Forecaster forecaster;
  std::uint64_t samples = 0;  ///< taken
  // Steps of successive processes, counted on.
  std::int64_t pid = -1;
  std::uint64_t its_steps = 0;  ///< at the latest sample
  std::uint64_t steps = 0;

  /// Takes the latest sample if it is new. `of`: steps of the process with the most of the memory; null: unknown.
  void take(const WatchedUsage& used, const ProcessSteps* of);
};

/// One thread at a time.
class RiskTracker {
 public:
  explicit RiskTracker(const ForecastOptions& options) : options_(options), host_{Forecaster(options)} {}

  /// Takes the new samples since the last call: at most one for each memory.
  void add(const MachineState& state);
  /// Assesses memories that are due: every second, less often if that would take more than a five-hundredth of a core.
  /// `now`: due or not. True if it did.
  bool assess(MachineState& state, bool now = false);

 private:
  ForecastOptions options_;
  std::vector<TrackedMemory> devices_;  ///< by position in MachineState::devices
  TrackedMemory host_;
  Pace pace_{std::chrono::seconds(1), 500};
};

/// Forecasts for each process on each device, and for its RSS: to find the process that makes a memory run out. One
/// thread at a time. A tracked memory takes up to 140 KiB after three weeks.
class ProcessRisks {
 public:
  static constexpr std::size_t kMaxMemories = 64;  ///< memories; the first ones seen

  explicit ProcessRisks(const ForecastOptions& options) : options_(options) {}

  /// Takes the new samples since the last call, of processes that have not ended.
  void add(const MachineState& state);
  /// Assesses memories that are due, as RiskTracker does. Memories that are gone keep their last assessment.
  void assess(MachineState& state, bool now = false);

 private:
  struct OfProcess {
    std::int64_t pid = -1;
    std::uint64_t first_seen_ns = 0;  ///< PIDs are reused
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

/// A memory runs out when one of its processes does, although others that end or shrink may hide it: the risk of each
/// device and of the host becomes that of its worst process, if that is worse.
void raise_risks_by_processes(MachineState& state);

}  // namespace tidemark
