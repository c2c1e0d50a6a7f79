// Forecasts of what each process has of each device, and of its RSS: who it is that makes a memory run out.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "monitor/risk_tracker.h"

namespace tidemark {

/// One thread at a time. A memory that is tracked takes up to 140 KiB after three weeks.
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
