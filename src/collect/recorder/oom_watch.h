// Which processes of the job the kernel's OOM killer ended.
//
// The kernel counts its kills before it kills, in the control group and for the machine, and says whom it chose in its
// log, which few may read. So a process that has ended is a victim when the log has named it or when a count rose,
// shortly before and if it died of SIGKILL; where nobody can say how it ended, of the counts only the control group's
// tells. The machine's counts the kills of all control groups: it tells only where hardly any memory was available.
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
/// Without readings it knows of the processes that ended() is told of, and not what they held.
class OomWatch {
 public:
  using Clock = std::chrono::steady_clock;

  explicit OomWatch(std::string root = "", std::function<Clock::time_point()> now = Clock::now);

  /// What was read of the host, in order of time. Returns the victims among the processes that are gone since.
  [[nodiscard]] std::vector<KilledProcess> take(const Reading& reading);
  /// A process of the job is there: what is known to have ended was an earlier one with its PID.
  void began(std::int64_t pid);
  /// A process of the job has ended, by `ticks` of the readings' clock; `signal`: what it died of, 0 for none; none:
  /// not known. None where it is no victim, or was asked for before.
  [[nodiscard]] std::optional<KilledProcess> ended(std::int64_t pid, std::optional<int> signal, std::uint64_t ticks);
  /// The program has ended: the victims among the processes that are gone since the latest reading.
  [[nodiscard]] std::vector<KilledProcess> program_ended();
  /// Kills that the control group has counted of late, and no process of the job was found for.
  [[nodiscard]] std::size_t unexplained() const { return in_cgroup_.open.size(); }
  /// Folder of the control group; empty where there is none.
  [[nodiscard]] std::string cgroup() const { return cgroup_ ? cgroup_->folder() : std::string(); }

 private:
  /// A kernel's count of kills, and those of late that no process was found for.
  struct Count {
    std::optional<std::uint64_t> last;
    std::deque<Clock::time_point> open;
    void see(const std::optional<std::uint64_t>& kills, Clock::time_point now);
    void forget_before(Clock::time_point time);
    /// Whether there is one; takes it.
    bool take();
  };

  struct Logged {
    LoggedKill kill;
    Clock::time_point read;
  };
  struct Ended {
    std::int64_t pid = 0;
    std::uint64_t ticks = 0;  ///< by which it had ended
  };

  [[nodiscard]] std::vector<KilledProcess> take(const HostReading& host, std::uint64_t ticks);
  /// Whether what was read at that time of a process was read before it ended.
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
  std::map<std::int64_t, Logged> logged_;      ///< by PID; of late, of processes that are not known to have ended
  std::map<std::int64_t, HostProcess> alive_;  ///< by PID
  std::deque<Ended> ended_;                    ///< the latest of them
  std::deque<HostReading> readings_;           ///< the latest: when the last was taken, memory may have been free again
};

/// The signal that ended a process, 0 where it exited, by its pidfd (Linux 6.15; below 0: there is none) or, until its
/// parent has waited for it, by /proc. None where nobody says.
[[nodiscard]] std::optional<int> ending_signal(std::int64_t pid, int pidfd, const std::string& root = "");

}  // namespace tidemark
