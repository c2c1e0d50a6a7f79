// The program that is recorded: how it is started, the signals that pass through, its exit.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "base/scoped_fd.h"

namespace tidemark {

/// A running child. While it lives, signals sent to this process are passed on to it instead of ending this process:
/// one at a time for each process, started from its only thread.
class ChildProcess {
 public:
  /// Starts `command` (looked up in PATH) with the variables in `environment` ("NAME=value") set.
  static ChildProcess start(const std::vector<std::string>& command, const std::vector<std::string>& environment);

  /// False when the program could not be executed; error() says why.
  explicit operator bool() const { return pid_ > 0; }
  [[nodiscard]] const Error& error() const { return error_; }
  /// What a shell returns then: 127 for not found, else 126.
  [[nodiscard]] int exit_code_if_not_started() const { return exit_code_if_not_started_; }

  /// Readable when handle_signals() has something to do.
  [[nodiscard]] int signal_fd() const { return signals_.get(); }
  void handle_signals();
  [[nodiscard]] bool ended() const { return ended_; }

  /// The child's exit code; does not return when a signal ended it, but dies of the same signal.
  int pass_on_status() const;

 private:
  ChildProcess() = default;

  pid_t pid_ = 0;  ///< 0 until it runs
  ScopedFd signals_;
  int status_ = 0;
  bool ended_ = false;
  int exit_code_if_not_started_ = 126;
  Error error_;
};

}  // namespace tidemark
