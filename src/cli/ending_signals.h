// Signals that end a command which watches something for a while.
#pragma once

#include <signal.h>

#include <chrono>
#include <optional>

#include "base/scoped_fd.h"

namespace tidemark::cli {

struct EndingSignal {
  int number = 0;
  bool from_terminal = false;  ///< the terminal sent it, to this process's group
};

/// During its lifetime, signals that end a command do not end this one. Created before threads are started, so that
/// none of them receives one.
class EndingSignals {
 public:
  /// `also`: another signal to be returned, which does not end a command by itself.
  explicit EndingSignals(std::optional<int> also = std::nullopt);
  ~EndingSignals();
  EndingSignals(const EndingSignals&) = delete;
  EndingSignals& operator=(const EndingSignals&) = delete;

  /// The signal that has come; std::nullopt: none until `time`.
  [[nodiscard]] std::optional<EndingSignal> wait_until(std::chrono::steady_clock::time_point time) const;

 private:
  sigset_t ending_{};
  sigset_t before_{};
  ScopedFd fd_;
};

}  // namespace tidemark::cli
