// Signals that would end this process while it has something to finish or to remove.
#pragma once

#include <signal.h>

#include <chrono>
#include <optional>

namespace tidemark {

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
