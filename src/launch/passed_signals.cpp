#include "launch/passed_signals.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <utility>

namespace tidemark {
namespace {

constexpr int kPauseMs = 40;  // between checks of pending signals, if nothing wakes this process

bool sent_by(const siginfo_t& signal, pid_t process) {
  return signal.si_code <= 0 && signal.si_pid == process;
}

void send(pid_t program, const siginfo_t& signal) {
  if (signal.si_code == SI_QUEUE) {
    ::sigqueue(program, signal.si_signo, signal.si_value);
  } else {
    ::kill(program, signal.si_signo);
  }
}

constexpr char kName[] = "signal-witness";
constexpr int kPatienceMs = 1000;

// killall, pkill and pidof select processes by name, command line and executable. If they sent a signal to this process
// and to the witness, it would look like one for the group.
void go_by_another_name() {
  ::prctl(PR_SET_NAME, kName);
  ::prctl(PR_SET_DUMPABLE, 0);  // hides /proc/PID/exe from the same user
  const ScopedFd file(::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> part{};
  std::size_t size = 0;
  for (ssize_t got = 0; (got = ::read(file.get(), part.data(), part.size())) > 0;)
    size += static_cast<std::size_t>(got);
  // The arguments lie one after the other, from argv[0] on.
  std::memset(program_invocation_name, 0, size);
  std::memcpy(program_invocation_name, kName, std::min(size, sizeof(kName)));
}

[[noreturn]] void bear_witness(int connection) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  go_by_another_name();
  // The witness must not keep this process's descriptors (pipes, locks) open until it ends.
  ::dup2(connection, 0);
  ::syscall(SYS_close_range, 1U, UINT_MAX, 0U);
  for (char question = 0; ::read(0, &question, 1) == 1;) {
    SignalSet pending;
    const timespec now{};
    for (int signal = 0; (signal = ::sigtimedwait(&all, nullptr, &now)) > 0;) pending.add(signal);
    if (::write(0, &pending, sizeof(pending)) < 0) break;
  }
  ::_exit(0);
}

}  // namespace

PassedSignals::PassedSignals() {
  ::sigfillset(&taken_);
  for (const int signal : {SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU}) ::sigdelset(&taken_, signal);
  ::sigprocmask(SIG_BLOCK, &taken_, &mask_before_);
  // If SIGCHLD is ignored, the kernel does not keep a child's status.
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &by_default, &child_action_before_);
  rlimit limit{};
  if (::getrlimit(RLIMIT_CPU, &limit) == 0) {
    processor_time_before_ = limit;
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_CPU, &limit);
  }
  fd_.reset(::signalfd(-1, &taken_, SFD_CLOEXEC | SFD_NONBLOCK));
  witness_.start();
}

void PassedSignals::restore() const {
  if (processor_time_before_) ::setrlimit(RLIMIT_CPU, &*processor_time_before_);
  ::sigaction(SIGCHLD, &child_action_before_, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

void PassedSignals::wait() const {
  pollfd entry{fd_.get(), POLLIN, 0};
  ::poll(&entry, 1, fd_ ? -1 : kPauseMs);
}

std::vector<siginfo_t> PassedSignals::take() const {
  std::vector<siginfo_t> signals;
  const timespec now{};
  for (siginfo_t signal{}; ::sigtimedwait(&taken_, &signal, &now) > 0;) {
    if (signal.si_signo != SIGCHLD && !sent_by(signal, ::getpid())) signals.push_back(signal);
  }
  return signals;
}

void PassedSignals::pass_on(pid_t program) {
  SignalSet early;  // sent to the group after this process's signals were read and before the witness's: this process
                    // reads them in the next round
  for (std::vector<siginfo_t> signals = take(); !signals.empty(); signals = take()) {
    const std::optional<SignalSet> of_group = witness_.take();
    const bool in_group = ::getpgid(program) == ::getpgrp();
    SignalSet next_early = of_group.value_or(SignalSet{});
    for (const siginfo_t& signal : signals) {
      const bool by_kernel = signal.si_code > 0;  // from a terminal: without a witness, assume it is for the group
      const bool for_group =
          of_group ? of_group->contains(signal.si_signo) || early.contains(signal.si_signo) : by_kernel;
      next_early.remove(signal.si_signo);
      if (signal.si_signo == kept_) {
        kept_came_ = true;
        continue;
      }
      const bool reached = for_group && (in_group || by_kernel);
      // Signals that the program sends to its parent are not passed back to it.
      if (!reached && !sent_by(signal, program)) send(program, signal);
    }
    early = next_early;
  }
}

void GroupWitness::start() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
  connection_.reset(ends[0]);
  const ScopedFd other(ends[1]);
  const pid_t pid = ::fork();
  if (pid == 0) {
    connection_.reset();
    bear_witness(other.get());
  }
  if (pid > 0) pid_ = pid;    // else take() finds the connection closed
  static_cast<void>(take());  // it answers once it is ready
}

void GroupWitness::stop() {
  connection_.reset();
  if (!pid_) return;
  ::kill(*pid_, SIGKILL);
  ::waitpid(*pid_, nullptr, 0);
  pid_.reset();
}

std::optional<SignalSet> GroupWitness::take() {
  if (!connection_) return std::nullopt;
  // Sending a signal to a group holds the kernel's process list until all members have it. This call, which changes
  // nothing, waits for that list: signals that have reached this process have now reached the witness.
  ::setpgid(0, ::getpgrp());
  const char question = 0;
  SignalSet pending;
  pollfd answer{connection_.get(), POLLIN, 0};
  if (::send(connection_.get(), &question, 1, MSG_NOSIGNAL) == 1 && ::poll(&answer, 1, kPatienceMs) == 1 &&
      ::recv(connection_.get(), &pending, sizeof(pending), 0) == static_cast<ssize_t>(sizeof(pending))) {
    return pending;
  }
  connection_.reset();  // it was killed or stopped; a late answer would belong to another request
  return std::nullopt;
}

StopSignals::StopSignals() {
  ::sigemptyset(&ending_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) ::sigaddset(&ending_, signal);
  }
  waking_ = ending_;
  ::sigaddset(&waking_, SIGCHLD);
  ::pthread_sigmask(SIG_BLOCK, &waking_, &before_);
}

StopSignals::~StopSignals() {
  if (stopped()) ::raise(*stopped_);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void StopSignals::wait(std::chrono::milliseconds most) {
  timespec time{most.count() / 1000, most.count() % 1000 * 1'000'000};
  const int signal = ::sigtimedwait(&waking_, nullptr, &time);
  if (signal > 0 && signal != SIGCHLD) stopped_ = signal;
}

bool StopSignals::stopped() {
  const timespec none{};
  for (int signal = 0; (signal = ::sigtimedwait(&ending_, nullptr, &none)) > 0;) stopped_ = signal;
  return stopped_.has_value();
}

std::optional<int> StopSignals::take() {
  return stopped() ? std::exchange(stopped_, std::nullopt) : std::nullopt;
}

}  // namespace tidemark
