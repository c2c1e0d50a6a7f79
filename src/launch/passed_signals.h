// Signals that are sent to this process but meant for the program, and signals that would end this process while it has
// something to finish or to remove.
//
// The program is in this process's group, as it would be without recording. A terminal's Ctrl-C and Ctrl-Z, a shell's
// job control and kill(-PGID) reach both processes; kill(PID), with the only number that the shell knows, reaches only
// this one and has to be passed on. The kernel does not report to the receiver which of the two it was: a GroupWitness
// detects it.
//
// Alternatives: in its own process group the program would not get the terminal's signals, and SIGKILL of this group
// would leave it behind. The sender of a signal is not enough: timeout(1) sends one to its child and then to the group.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/scoped_fd.h"

namespace tidemark {

/// Signals by their numbers, 1 to 64.
class SignalSet {
 public:
  void add(int signal) { bits_ |= bit(signal); }
  void remove(int signal) { bits_ &= ~bit(signal); }
  [[nodiscard]] bool contains(int signal) const { return (bits_ & bit(signal)) != 0; }

 private:
  static std::uint64_t bit(int signal) { return std::uint64_t{1} << (signal - 1); }

  std::uint64_t bits_ = 0;
};

/// A child in this process's group that blocks all signals and sleeps: its pending signals were sent to the group. It
/// has its own name and command line, so that searches for tidemark do not find it. One thread.
class GroupWitness {
 public:
  GroupWitness() = default;
  ~GroupWitness() { stop(); }
  GroupWitness(const GroupWitness&) = delete;
  GroupWitness& operator=(const GroupWitness&) = delete;

  /// Call it with all signals blocked and no other thread running. If no process or descriptor is available, take()
  /// returns std::nullopt.
  void start();
  /// Ends it. Otherwise it ends with this process.
  void stop();
  [[nodiscard]] std::optional<pid_t> pid() const { return pid_; }

  /// The signals sent to the group since the last call, including each that has reached this process before the call.
  /// std::nullopt if unknown.
  [[nodiscard]] std::optional<SignalSet> take();

 private:
  std::optional<pid_t> pid_;
  ScopedFd connection_;
};

/// Blocks every signal that another process may send, except stop signals and SIGKILL: they are kept until pass_on(),
/// and signals that would have ended this process are left to the program. Signals that this process causes itself
/// (SIGPIPE, SIGXFSZ) become errors of system calls; its processor time counts only for the hard limit. One object for
/// the life of a process, created while it has one thread; threads started later have the same mask.
class PassedSignals {
 public:
  PassedSignals();

  /// Call it in a child between vfork and exec: restores the original state.
  void restore() const;

  /// Readable if wait() would return. Below 0 if no descriptor was available.
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Waits for a signal, including the one for the program's end; without a descriptor, a short time.
  void wait() const;
  /// Keeps this signal: pass_on() no longer passes it on. The program still gets signals sent to its group.
  void keep(int signal) { kept_ = signal; }
  /// Whether that signal has come since the last call.
  [[nodiscard]] bool take_kept() { return std::exchange(kept_came_, false); }
  /// Passes the signals so far on to `program`, except those that it has received already.
  void pass_on(pid_t program);
  /// The program has ended: from now on signals are only blocked.
  void stop() { witness_.stop(); }
  /// The PID of a child of this process that the program does not know.
  [[nodiscard]] std::optional<pid_t> witness() const { return witness_.pid(); }

 private:
  [[nodiscard]] std::vector<siginfo_t> take() const;

  int kept_ = 0;
  bool kept_came_ = false;
  sigset_t taken_;
  sigset_t mask_before_;
  struct sigaction child_action_before_;
  std::optional<rlimit> processor_time_before_;
  ScopedFd fd_;
  GroupWitness witness_;
};

/// While it exists, signals that would end this process (SIGINT, SIGTERM, SIGHUP, unless ignored) are kept: stopped()
/// returns whether one has come. It is delivered when this object is destroyed, unless it was taken. One object at a
/// time, before other threads are started.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  /// Waits until a child has ended or a signal has come, at most this long.
  void wait(std::chrono::milliseconds most);
  /// Whether a signal has come.
  [[nodiscard]] bool stopped();
  /// The signal that came, if any: the caller then decides whether to end this process.
  [[nodiscard]] std::optional<int> take();

 private:
  sigset_t ending_;
  sigset_t waking_;  // these signals and SIGCHLD
  sigset_t before_;
  std::optional<int> stopped_;
};

}  // namespace tidemark
