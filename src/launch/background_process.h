// A program that works for us, and ends with us.
#pragma once

#include <signal.h>

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tidemark {

/// While it exists, SIGINT, SIGTERM and SIGHUP wait, so that what has to be removed at the end is removed.
class HeldSignals {
 public:
  HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals();

  /// Whether one of them waits.
  [[nodiscard]] bool any() const;
  /// The mask of before.
  [[nodiscard]] const sigset_t& before() const { return before_; }

 private:
  sigset_t held_{};
  sigset_t before_{};
};

/// Runs `command` (looked up in PATH) with the variables in `environment` ("NAME=value") set, stdout and stderr into
/// the file `log`, in a process group of its own; calls `tick` ten times a second until it ends. Its exit code. An
/// error where it could not be started or a signal ended it; where one of `signals` waits, its group is killed.
Result<int> run_in_background(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                              const std::string& log, const HeldSignals& signals, const std::function<void()>& tick);

/// The variables of this process with those in `added` ("NAME=value") set; pointers to both, null at the end.
[[nodiscard]] std::vector<char*> environment_with(const std::vector<std::string>& added);

}  // namespace tidemark
