// The recorded program: starting it, passing signals on, its exit status.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/passed_signals.h"

namespace tidemark {

/// A child, and the signals that are passed on to it from the construction of this object on: see PassedSignals.
class ChildProcess {
 public:
  /// Starts `command` (looked up in PATH) with the variables in `environment` ("NAME=value") set. Uses no descriptor.
  /// `prepare`: see execute().
  void start(const std::vector<std::string>& command, const std::vector<std::string>& environment,
             const std::function<void()>& prepare = {});

  /// False before start(), and if the program could not be executed; error() has the reason.
  explicit operator bool() const { return pid_ > 0; }
  [[nodiscard]] const Error& error() const { return error_; }
  /// A shell's exit code for that: 127 for not found, else 126.
  [[nodiscard]] int exit_code_if_not_started() const { return exit_code_if_not_started_; }

  /// Readable when handle_signals() has something to do. Below 0 if no descriptor was available.
  [[nodiscard]] int signal_fd() const { return signals_.fd(); }
  /// Waits until handle_signals() has something to do.
  void wait_for_signals() const { signals_.wait(); }
  /// As PassedSignals::keep() and take_kept().
  void keep_signal(int signal) { signals_.keep(signal); }
  [[nodiscard]] bool take_kept_signal() { return signals_.take_kept(); }
  /// Passes signals on, and notices the end of the program.
  void handle_signals();
  /// A further child of this process, see GroupWitness.
  [[nodiscard]] std::optional<pid_t> witness() const { return signals_.witness(); }
  [[nodiscard]] bool ended() const { return ended_; }

  /// The exit code of the child once it has ended; std::nullopt if a signal ended it.
  [[nodiscard]] std::optional<int> exit_code() const;
  /// The signal that ended the child; std::nullopt if it exited.
  [[nodiscard]] std::optional<int> ending_signal() const;
  /// The child's exit code; if a signal ended the child, this process ends by the same signal.
  int pass_on_status() const;

 private:
  PassedSignals signals_;
  pid_t pid_ = 0;  ///< 0 until it runs
  int status_ = 0;
  bool ended_ = false;
  int exit_code_if_not_started_ = 126;
  Error error_;
};

}  // namespace tidemark
