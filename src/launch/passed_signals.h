// The signals that somebody sends to us and means for the program, and those that would end this process while it has
// something to finish or to remove.
//
// The program is in our process group, as it would be without us. A terminal's Ctrl-C and Ctrl-Z, a shell's job control
// and kill(-PGID) reach both of us; kill(PID), with the only number that the shell knows, reaches us alone and has to
// be passed on. The kernel does not tell the receiver which of the two it was: a GroupWitness does.
//
// Alternatives: in a process group of its own the program would not get the terminal's signals, and SIGKILL of our
// group would leave it behind. Who sent a signal says too little: timeout(1) sends one to its child and then to the
// group.
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

/// A child in our process group that blocks all signals and sleeps: what is pending there was sent to the group. Its
/// name and command line are its own, so that what looks for those of tidemark does not find it. One thread.
class GroupWitness {
 public:
  GroupWitness() = default;
  ~GroupWitness() { stop(); }
  GroupWitness(const GroupWitness&) = delete;
  GroupWitness& operator=(const GroupWitness&) = delete;

  /// With all signals blocked and no other thread running. Without room for a process or a descriptor nothing is known.
  void start();
  /// Ends it. Without that it ends with us.
  void stop();
  [[nodiscard]] std::optional<pid_t> pid() const { return pid_; }

  /// The signals sent to the group since the last call, among them each that has reached this process before the call.
  /// None: not known.
  [[nodiscard]] std::optional<SignalSet> take();

 private:
  std::optional<pid_t> pid_;
  ScopedFd connection_;
};

/// Takes every signal from this process that another may send, except those that stop it and SIGKILL: they are kept
/// until pass_on(), and whatever would have ended this process ends the program, or does not. What this process causes
/// itself (SIGPIPE, SIGXFSZ) is an error of a system call and nothing more; its processor time counts for the hard
/// limit alone. One object for the life of a process, made while it has one thread; threads started later have the same
/// mask.
class PassedSignals {
 public:
  PassedSignals();

  /// In a child between vfork and exec: everything is as it was.
  void restore() const;

  /// Readable when wait() would return. Below 0 where no descriptor could be had.
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Waits for a signal, that of the program's end among them; without a descriptor, a while.
  void wait() const;
  /// This one is for us: however it comes, pass_on() passes it no more. The program still gets what is sent to its
  /// group.
  void keep(int signal) { kept_ = signal; }
  /// Whether that has come since the last call.
  [[nodiscard]] bool take_kept() { return std::exchange(kept_came_, false); }
  /// Passes the signals so far on to `program`, each that it has not got already.
  void pass_on(pid_t program);
  /// There is no program any more: signals are kept from this process, and that is all.
  void stop() { witness_.stop(); }
  /// A child of this process that the program does not know.
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

/// While it exists, signals that would end this process (SIGINT, SIGTERM, SIGHUP, but for those that it ignores) are
/// kept: stopped() says whether one has come. It is delivered when this object goes, unless it was taken. One object at
/// a time, before other threads are started.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  /// Waits until a child has ended or a signal has come, but no longer than this.
  void wait(std::chrono::milliseconds most);
  /// Whether one has come.
  [[nodiscard]] bool stopped();
  /// The signal that came, if one did: whoever takes it ends this process or does not.
  [[nodiscard]] std::optional<int> take();

 private:
  sigset_t ending_;
  sigset_t waking_;  // these and SIGCHLD
  sigset_t before_;
  std::optional<int> stopped_;
};

}  // namespace tidemark
