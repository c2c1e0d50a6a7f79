#include "launch/stop_signals.h"

#include <ctime>
#include <utility>

namespace tidemark {

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
