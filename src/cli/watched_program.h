// A program that a monitoring command starts and records, and watches until it ends: `tidemark leak -- python
// train.py`.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace tidemark::cli {

/// A child that runs `tidemark run -- PROGRAM`: in this process's group, with its standard descriptors. One thread.
class WatchedProgram {
 public:
  /// An error if tidemark could not be started; `tidemark run` reports a program that cannot be.
  [[nodiscard]] Result<void> start(const std::vector<std::string>& program);

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Whether it has ended, with its recording.
  [[nodiscard]] bool ended();
  /// Passes on a signal that this process got. The terminal sends its own to the whole group.
  void pass_on(int signal, bool from_terminal) const;
  /// Waits for its end. Returns its exit code, as a shell does for a program that a signal has ended.
  [[nodiscard]] int wait();
  /// Whether wait()'s result says that the program could not be executed, as a shell does.
  [[nodiscard]] static bool has_not_started(int exit_code) { return exit_code == 126 || exit_code == 127; }

 private:
  pid_t pid_ = 0;
  int status_ = 0;
  bool ended_ = false;
};

}  // namespace tidemark::cli
