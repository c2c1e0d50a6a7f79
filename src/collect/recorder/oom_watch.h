// Finds the processes of the job that the kernel's OOM killer ended.
//
// The kernel counts its kills before it kills, in the control group and for the machine, and names the process in its
// log, which needs privileges to read. So an ended process is a victim if the log names it, or if a count rose shortly
// before and it died of SIGKILL. If its exit status is unknown, only the control group's count is used. The machine's
// count includes the kills of all control groups: it is used only if hardly any memory was available.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collect/machine/host_memory.h"
#include "collect/machine/kernel_log.h"
#include "collect/recorder/sampling/readings.h"

namespace tidemark {

/// Not thread-safe. Reads the log with each reading, and small files of /proc and /sys only when a process has ended.
/// Without readings it finds only the processes passed to ended(), without their memory.
class OomWatch {
 public:
  using Clock = std::chrono::steady_clock;

  explicit OomWatch(std::string root = "", std::function<Clock::time_point()> now = Clock::now);

  /// Takes readings of the host in order of time. Returns the victims among the processes that are gone since.
  [[nodiscard]] std::vector<KilledProcess> take(const Reading& reading);
  /// A process of the job exists: an earlier end belongs to an earlier process with its PID.
  void began(std::int64_t pid);
  /// A process of the job has ended, before `ticks` of the readings' clock. `signal`: the signal that ended it, 0 for
  /// none, std::nullopt if unknown. Returns std::nullopt if it is not a victim, or was returned before.
  [[nodiscard]] std::optional<KilledProcess> ended(std::int64_t pid, std::optional<int> signal, std::uint64_t ticks);
  /// The program has ended: the victims among the processes that are gone since the latest reading.
  [[nodiscard]] std::vector<KilledProcess> program_ended();
  /// Recent kills counted by the control group without a matching process of the job.
  [[nodiscard]] std::size_t unexplained() const { return in_cgroup_.open.size(); }
  /// Folder of the control group; empty without one.
  [[nodiscard]] std::string cgroup() const { return cgroup_ ? cgroup_->folder() : std::string(); }

 private:
  /// A kernel's count of kills, and the recent ones without a matching process.
  struct Count {
    std::optional<std::uint64_t> last;
    std::deque<Clock::time_point> open;
    void see(const std::optional<std::uint64_t>& kills, Clock::time_point now);
    void forget_before(Clock::time_point time);
    /// Takes one open kill; false if there is none.
    bool take();
  };

  struct Logged {
    LoggedKill kill;
    Clock::time_point read;
  };
  struct Ended {
    std::int64_t pid = 0;
    std::uint64_t ticks = 0;  ///< it had ended by then
  };

  [[nodiscard]] std::vector<KilledProcess> take(const HostReading& host, std::uint64_t ticks);
  /// Whether the process ended after a reading of it at `ticks`.
  bool has_ended(std::int64_t pid, std::uint64_t ticks);
  void take(const HostPartsSample& parts);
  void check();
  void read_log();
  [[nodiscard]] std::vector<KilledProcess> victims_among(std::vector<std::int64_t> gone, std::uint64_t ticks);
  [[nodiscard]] HostProcess forget(std::int64_t pid, std::uint64_t ticks);
  [[nodiscard]] std::optional<std::uint64_t> usage_of_late() const;
  [[nodiscard]] bool machine_has_memory() const;

  std::string root_;
  std::function<Clock::time_point()> now_;
  std::optional<Cgroup> cgroup_;
  KernelLog log_;
  std::optional<std::uint64_t> machine_bytes_;
  Count in_cgroup_;
  Count on_machine_;
  std::map<std::int64_t, Logged> logged_;      ///< by PID; recent kills of processes not known to have ended
  std::map<std::int64_t, HostProcess> alive_;  ///< by PID
  std::deque<Ended> ended_;                    ///< the most recent ones
  std::deque<HostReading> readings_;           ///< the most recent ones: at the last one, memory may have been free
                                               ///< again
};

/// The signal that ended a process, 0 if it exited, by its pidfd (Linux 6.15; below 0: no pidfd) or, until its parent
/// has waited for it, by /proc. std::nullopt if unknown.
[[nodiscard]] std::optional<int> ending_signal(std::int64_t pid, int pidfd, const std::string& root = "");

}  // namespace tidemark
