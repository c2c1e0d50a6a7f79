#include "cli/ending_signals.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace tidemark::cli {

EndingSignals::EndingSignals(std::optional<int> also) {
  ::sigemptyset(&ending_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&ending_, signal);
  if (also) ::sigaddset(&ending_, *also);
  ::pthread_sigmask(SIG_BLOCK, &ending_, &before_);
  fd_ = ScopedFd(::signalfd(-1, &ending_, SFD_CLOEXEC | SFD_NONBLOCK));
}

EndingSignals::~EndingSignals() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<EndingSignal> EndingSignals::wait_until(std::chrono::steady_clock::time_point time) const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - std::chrono::steady_clock::now());
  pollfd watched{fd_.get(), POLLIN, 0};
  const int ready = ::poll(&watched, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000)));
  signalfd_siginfo info{};
  const bool has_come = ready > 0 && ::read(fd_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info));
  if (!has_come) return std::nullopt;
  return EndingSignal{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
}

}  // namespace tidemark::cli
