#include "tui/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace tidemark::tui {

Signals::Signals() {
  sigset_t kept;
  sigemptyset(&kept);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGCONT}) sigaddset(&kept, signal);
  pthread_sigmask(SIG_BLOCK, &kept, &before_);
  descriptor_.reset(signalfd(-1, &kept, SFD_NONBLOCK | SFD_CLOEXEC));
}

Signals::~Signals() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> Signals::take() {
  signalfd_siginfo info{};
  if (::read(descriptor_.get(), &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

void die_of(int signal) {
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
}

}  // namespace tidemark::tui
