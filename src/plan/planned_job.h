// When the processes of a plan are ended, so that none is left.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "collect/machine/host_memory.h"
#include "plan/phantom_run.h"

namespace tidemark {

/// Counts from its construction on. The kernel does not report which processes were killed: a control group (a
/// container, a Slurm job, a terminal's session) counts its own, the machine all.
class OomKills {
 public:
  /// `root` comes before "/proc" and before the mount points in it.
  explicit OomKills(const std::string& root = "");

  [[nodiscard]] std::uint64_t count() const;
  /// Whether only processes of this process's control group count.
  [[nodiscard]] bool counts_own_group() const { return group_.has_value(); }

 private:
  [[nodiscard]] std::optional<std::uint64_t> read() const;

  std::string root_;
  std::optional<Cgroup> group_;  // nullopt if it does not count
  std::uint64_t before_ = 0;
};

/// Decides when a job ends, from the progress of its processes.
class StepWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `processes`: the live ones. Whether to end the job: each process that uses the GPU has made its last training
  /// step, or makes no more steps while others wait for it.
  [[nodiscard]] bool is_complete(const std::vector<PhantomProcess>& processes, Time now);
  /// How long no training step has been complete.
  [[nodiscard]] std::chrono::seconds time_without_step(Time now) const {
    return std::chrono::duration_cast<std::chrono::seconds>(now - last_step_);
  }
  /// Training steps of all processes so far.
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  /// Time since the program's last request for device memory.
  [[nodiscard]] std::chrono::seconds quiet_for(Time now) const {
    return std::chrono::duration_cast<std::chrono::seconds>(now - last_request_);
  }

 private:
  std::uint64_t steps_ = 0;
  std::uint64_t requests_ = 0;
  Time last_step_ = Time::clock::now();
  Time last_request_ = Time::clock::now();
};

/// The processes below this one, except `outsider`, which does not belong to the job. From its construction on, orphans
/// of the job become children of this process.
class PlannedJob {
 public:
  explicit PlannedJob(const PhantomRun& phantom);

  /// Called some times a second: ends the job once its last training step is complete. Looks at it every 20 ms at most.
  void watch(std::optional<pid_t> outsider);
  /// Whether watch() has ended it.
  [[nodiscard]] bool is_complete() const { return complete_; }
  /// True once, when the program has not requested device memory for a minute.
  [[nodiscard]] bool turned_idle();
  /// True once, when it has not made a training step for two minutes, although it requests device memory.
  [[nodiscard]] bool stopped_stepping();

  /// Ends the remaining processes and waits for them: half a second for those that end by themselves.
  static void end_remaining(std::optional<pid_t> outsider);

 private:
  const PhantomRun& phantom_;
  StepWatch steps_;
  StepWatch::Time next_look_;
  bool complete_ = false;
  bool said_quiet_ = false;
  bool said_no_steps_ = false;
};

/// `python -u train.py --epochs 1` as `count` ranks on this machine: `PYTHON -u -m torch.distributed.run --standalone
/// --nproc-per-node COUNT train.py --epochs 1`. A program with a first line that names its interpreter is started by
/// that line. An error for `python -c` and for an interpreter without a program.
[[nodiscard]] Result<std::vector<std::string>> ranks_command(const std::vector<std::string>& command,
                                                             const std::string& python, std::uint64_t count);

}  // namespace tidemark
