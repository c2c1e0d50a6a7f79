// Threads that receive no signals: these are for the thread that handles them.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace tidemark {

/// Blocks all signals during its lifetime, for its thread and for threads started by it meanwhile.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

/// Runs `work` on a thread that takes no signals, from its first moment on. Throws std::system_error as std::thread
/// does.
template <typename Work>
[[nodiscard]] std::thread thread_without_signals(Work&& work) {
  const SignalsBlocked blocked;
  return std::thread(std::forward<Work>(work));
}

}  // namespace tidemark
