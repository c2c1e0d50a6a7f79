// Trials as child processes: this program once more, with other arguments.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tidemark {

struct TrialEnd {
  std::optional<int> exit_code;  ///< none when a signal ended it
  std::uint64_t duration_ns = 0;
  std::uint64_t host_bytes = 0;  ///< the highest resident memory of one of its processes
};

/// A child in a process group of its own, which gets SIGTERM when this process goes. Killed with this object.
/// Move-only.
class TrialProcess {
 public:
  /// Starts `tidemark WORDS`, its stdout in `folder`/result.json, its stderr in `folder`/output.log; stdin is empty.
  static Result<TrialProcess> start(const std::vector<std::string>& words, const std::string& folder);

  TrialProcess(TrialProcess&& other) noexcept;
  TrialProcess(const TrialProcess&) = delete;
  TrialProcess& operator=(const TrialProcess&) = delete;
  TrialProcess& operator=(TrialProcess&& other) noexcept;
  ~TrialProcess();

  /// None while it runs. To be called once more only while it returned none.
  [[nodiscard]] std::optional<TrialEnd> ended();

 private:
  TrialProcess() = default;
  void kill();

  pid_t pid_ = 0;  // 0 once it has ended
  std::chrono::steady_clock::time_point start_;
};

/// While it exists, signals that would end this process (SIGINT, SIGTERM, SIGHUP) are kept: stopped() says whether one
/// has come. One object at a time, before other threads are started.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  /// Waits until a child has ended or a signal has come, but no longer than this.
  void wait(std::chrono::milliseconds most);
  /// The signal that came, if one did.
  [[nodiscard]] std::optional<int> stopped() const { return stopped_; }

 private:
  sigset_t kept_;
  sigset_t before_;
  std::optional<int> stopped_;
};

}  // namespace tidemark
