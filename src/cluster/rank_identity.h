// The place of a process in its job: from the environment that a launcher gave it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/protocol.h"
#include "monitor/engine.h"

namespace tidemark {

/// `environment`: "NAME=value" entries, each with a zero byte behind it. Variables of PyTorch's launcher, MPI, Flux and
/// Slurm (collect/ring/ranks.h); else JOB_COMPLETION_INDEX of an indexed job of Kubernetes, whose pods are one rank
/// each. The role is TIDEMARK_ROLE, else torchrun's ROLE_NAME unless that is "default".
[[nodiscard]] RankIdentity identity_in(std::string_view environment);

/// A variable that has the same value in all processes of a job, and another one in those of other jobs.
struct JobVariable {
  const char* name;
  bool is_batch_system;            ///< its value is the default name of the job
  const char* required = nullptr;  ///< without it, `name` may be anything
};
// A job's own number comes before what was started in it. Slurm: sbatch(1), OUTPUT ENVIRONMENT VARIABLES; OpenPBS:
// qsub(1); LSF: "Environment variables set for job execution"; Flux: flux-environment(7). JOB_NAME is what the
// manifests of indexed jobs set from the label batch.kubernetes.io/job-name. torchrun: "Environment Variables"; mpirun:
// PMIx standard, PMIX_NAMESPACE.
inline constexpr JobVariable kJobVariables[] = {{"SLURM_JOB_ID", true},
                                                {"PBS_JOBID", true},
                                                {"LSB_JOBID", true},
                                                {"FLUX_JOB_ID", true},
                                                {"JOB_NAME", false, "KUBERNETES_SERVICE_HOST"},
                                                {"TORCHELASTIC_RUN_ID", false},
                                                {"PMIX_NAMESPACE", false}};

/// The job variables in an environment, with their values, in the order of kJobVariables. "none", which torchrun sets
/// without --rdzv-id, is no value.
using JobNumbers = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] JobNumbers job_numbers_in(std::string_view environment);
/// This process's.
[[nodiscard]] JobNumbers own_job_numbers();

/// The processes of the job on a machine.
struct NodeRanks {
  std::vector<RankIdentity> ranks;
  std::set<std::int64_t> strangers;  ///< PIDs of programs of other jobs
  std::string problem;               ///< why other processes may be missing or among them, a sentence; else empty
};

/// Tells the processes of a job from others on the machine. One thread at a time.
class RankIdentities {
 public:
  /// `own`: of the agent: only processes with the same value of its first variable are of the job. If it is empty, only
  /// those that have `job`, its name, as a value, as soon as one has been seen; else all.
  RankIdentities(JobNumbers own, std::string job, std::string root = "");

  /// Of the processes that run the job's program: neither their workers nor their launchers. At most
  /// AgentMessage::kMaxRanks. Each environment is read once.
  [[nodiscard]] NodeRanks find(const MonitorSnapshot& state);

 private:
  struct Known {
    std::uint64_t first_seen_ns = 0;  // another process has the PID if this differs
    RankIdentity identity;
    JobNumbers jobs;
  };
  using KnownProcesses = std::map<std::int64_t, Known>;

  const Known& look_up(std::int64_t pid, std::uint64_t first_seen_ns, bool young, KnownProcesses& seen);
  [[nodiscard]] bool is_of_job(const JobNumbers& jobs) const;
  [[nodiscard]] std::string problem_of(const KnownProcesses& seen, const NodeRanks& found) const;

  JobNumbers own_;
  std::string job_;
  bool job_is_number_ = false;  // a process has the job's name as its number
  std::string root_;
  KnownProcesses known_;
};

}  // namespace tidemark
