// The place of a process in its job: from the environment that a launcher gave it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/protocol.h"
#include "monitor/engine.h"

namespace tidemark {

/// `environment`: "NAME=value" entries, each with a zero byte behind it. Variables of PyTorch's launcher, MPI, Flux and
/// Slurm (collect/ring/ranks.h); else JOB_COMPLETION_INDEX of an indexed job of Kubernetes, whose pods are one rank
/// each. The role is TIDEMARK_ROLE, else torchrun's ROLE_NAME unless that is "default".
[[nodiscard]] RankIdentity identity_in(std::string_view environment);

/// The identities of a machine's processes; each environment is read once. One thread at a time.
class RankIdentities {
 public:
  explicit RankIdentities(std::string root = "") : root_(std::move(root)) {}

  /// Of the processes that run the job's program: neither their workers nor their launchers. At most
  /// AgentMessage::kMaxRanks.
  [[nodiscard]] std::vector<RankIdentity> find(const MonitorSnapshot& state);

 private:
  struct Known {
    std::uint64_t first_seen_ns = 0;  // another process has the PID if this differs
    RankIdentity identity;
  };

  std::string root_;
  std::map<std::int64_t, Known> known_;
};

}  // namespace tidemark
