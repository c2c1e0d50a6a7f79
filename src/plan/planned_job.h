// When the processes of a plan are ended, and that none of them is left.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/phantom_run.h"

namespace tidemark {

/// What to do about a job whose processes have done this much.
class StepWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `processes`: those that are alive. Whether to end the job: each that uses the GPU has made its last training step,
  /// or it makes no step any more while others wait for it.
  [[nodiscard]] bool is_complete(const std::vector<PhantomProcess>& processes, Time now);
  /// How long no training step has been complete.
  [[nodiscard]] std::chrono::seconds without_step_for(Time now) const {
    return std::chrono::duration_cast<std::chrono::seconds>(now - last_step_);
  }
  /// Training steps of all processes so far.
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  /// How long the program has not asked for device memory.
  [[nodiscard]] std::chrono::seconds quiet_for(Time now) const {
    return std::chrono::duration_cast<std::chrono::seconds>(now - last_request_);
  }

 private:
  std::uint64_t steps_ = 0;
  std::uint64_t requests_ = 0;
  Time last_step_ = Time::clock::now();
  Time last_request_ = Time::clock::now();
};

/// The processes below this one, but for `outsider`, which does not belong to the job. From its construction on, what a
/// process of the job leaves behind becomes a child of this process.
class PlannedJob {
 public:
  explicit PlannedJob(const PhantomRun& phantom);

  /// Called some times a second: ends the job once its last training step is complete. Looks at it every 20 ms at most.
  void watch(std::optional<pid_t> outsider);
  /// Whether watch() has ended it.
  [[nodiscard]] bool is_complete() const { return complete_; }
  /// True once, when the program has not asked for device memory for a minute.
  [[nodiscard]] bool became_quiet();
  /// True once, when it has not made a training step for two minutes, though it asks for device memory.
  [[nodiscard]] bool makes_no_steps();

  /// Ends what is left of it, and waits for that: half a second for those that end by themselves.
  static void end_rest(std::optional<pid_t> outsider);

 private:
  const PhantomRun& phantom_;
  StepWatch steps_;
  StepWatch::Time next_look_;
  bool complete_ = false;
  bool said_quiet_ = false;
  bool said_no_steps_ = false;
};

}  // namespace tidemark
