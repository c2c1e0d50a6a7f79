// The risk that a memory runs out, and its growth, in words: the same in text, JSON and on a screen. Not safe to print:
// names of processes are as the system reports them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "monitor/machine_state.h"
#include "monitor/watch_reports.h"

namespace tidemark {

/// "GPU 0: NVIDIA H100 80GB", "host memory", "memory of the control group".
[[nodiscard]] std::string watched_title(const WatchedDevice& device, const MachineState& state);

/// "the control group", "the control group of process 4242" if that is monitored.
[[nodiscard]] std::string control_group_text(const WatchedHost& host);

/// Explanation and advice on the memory of one process on a device, or on the host if `device` is null: sentences. Not
/// safe to print.
[[nodiscard]] std::string process_recommendation_text(const WatchedProcess& process, const WatchedDevice* device,
                                                      const ProcessRisk& risk);
/// A line for each process that will reach a limit: "GPU 0 of process 4242 (python train.py): its peaks grow by …; the
/// limit is reached in …". Not safe to print.
[[nodiscard]] std::vector<std::string> growing_processes_text(const MachineState& state);

/// "1 sample", "1,234 samples".
[[nodiscard]] std::string samples_text(std::uint64_t samples);

/// ", confidence 87%", 99% at most; empty if unknown.
[[nodiscard]] std::string confidence_text(const RiskAssessment& risk);

/// "growth of 12.3 MiB/min (11.9 to 12.7)", "sawtooth with a period of 4.0 s", "too few samples".
[[nodiscard]] std::string pattern_text(const RiskAssessment& risk);

/// "in 2 min (1 min to 4 min)", "in 2 min at the earliest"; empty if it is not reached.
[[nodiscard]] std::string time_to_limit_text(const RiskAssessment& risk);

/// Advice with its evidence, for a device or for the host's memory.
[[nodiscard]] std::string recommendation_text(const WatchedDevice& device, const MachineState& state);
[[nodiscard]] std::string host_recommendation_text(const MachineState& state);
/// The same of the moment of the change.
[[nodiscard]] std::string recommendation_text(const RiskChange& change);

/// "GPU 0", "GPU 0 of process 4242 (python train.py)", "RSS of process 4242 (python train.py)", "allocated on cuda:0 by
/// process 4242 (python train.py)".
[[nodiscard]] std::string growing_memory_text(const MemoryGrowth& growth, const WatchRun& run);

}  // namespace tidemark
