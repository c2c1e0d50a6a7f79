#include "launch/passed_signals.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace tidemark {
namespace {

constexpr int kPauseMs = 40;  // between looks at what is pending, where nothing wakes us

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

}  // namespace

PassedSignals::PassedSignals() {
  ::sigfillset(&taken_);
  for (const int signal : {SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU}) ::sigdelset(&taken_, signal);
  ::sigprocmask(SIG_BLOCK, &taken_, &mask_before_);
  // Where SIGCHLD is ignored, the kernel does not keep how a child ended.
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
  SignalSet
      early;  // sent to the group after we took ours and before the witness was asked: ours come in the next round
  for (std::vector<siginfo_t> signals = take(); !signals.empty(); signals = take()) {
    const std::optional<SignalSet> of_group = witness_.take();
    const bool in_group = ::getpgid(program) == ::getpgrp();
    SignalSet next_early = of_group.value_or(SignalSet{});
    for (const siginfo_t& signal : signals) {
      const bool by_kernel = signal.si_code > 0;  // a terminal: without a witness, for the group
      const bool for_group =
          of_group ? of_group->contains(signal.si_signo) || early.contains(signal.si_signo) : by_kernel;
      next_early.remove(signal.si_signo);
      if (signal.si_signo == kept_) {
        kept_came_ = true;
        continue;
      }
      const bool reached = for_group && (in_group || by_kernel);
      // What the program sends to its parent is not for itself.
      if (!reached && !sent_by(signal, program)) send(program, signal);
    }
    early = next_early;
  }
}

}  // namespace tidemark
