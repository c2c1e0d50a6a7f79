// Compares the nodes and ranks of a job, and finds what decides its risk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cluster/job_report.h"
#include "cluster/job_state.h"

namespace tidemark {

/// The job at `now_ns` of the receiver's clock; name, times, end and problems are the caller's to fill in.
///
/// Only nodes whose state is current count for the risk, the roles, outliers and stragglers. Ranks of others keep their
/// latest values, with JobRank::current false.
[[nodiscard]] JobReport compare_job(const JobState& job, std::uint64_t now_ns);

/// The devices of all nodes, with keys "NODE/KEY", for a picture of their use: at most `most`, the fullest ones. Their
/// times are since their agent's start.
[[nodiscard]] MachineState all_devices(const JobState& job, std::size_t most);

/// Whether the first risk is worse: of a higher level, or of the same level and sooner.
[[nodiscard]] bool is_worse(const RiskAssessment& risk, const RiskAssessment& than);

}  // namespace tidemark
