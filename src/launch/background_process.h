// Programs started by this process: one that works in the background and ends with it, and one that prints an answer on
// stdout and ends.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/scoped_fd.h"

namespace tidemark {

struct Command {
  std::vector<std::string> words;             ///< the program and its arguments
  std::vector<std::string> environment = {};  ///< variables ("NAME=value") that are set for it
  std::string file = {};                      ///< file to execute if it is not the first word, looked up in PATH
};

/// Starts a program. `prepare` runs in the child, which shares the memory of this process until then: it may only make
/// system calls. Uses no descriptor. Returns 0, or the error as posix_spawnp() does.
[[nodiscard]] int execute(const Command& command, const std::function<void()>& prepare, pid_t& pid);

/// Descriptors that become stdout, stderr and stdin of a program. Below 0: /dev/null.
struct StandardDescriptors {
  int out = STDOUT_FILENO;
  int err = STDERR_FILENO;
  int in = -1;
};

/// A new, empty file for the output of a program.
[[nodiscard]] Result<ScopedFd> open_output(const std::string& path);

struct ProcessEnd {
  std::optional<int> exit_code;      ///< std::nullopt if a signal ended it
  std::optional<int> ending_signal;  ///< std::nullopt if it exited
  std::uint64_t duration_ns = 0;
  std::uint64_t host_bytes = 0;  ///< the highest resident memory of any of its processes
};

/// A child in its own process group, with no signal blocked, and with only the standard descriptors. It gets SIGTERM
/// when this process ends; its group is ended with this object, and the group's remaining processes when the child has
/// ended. Move-only.
class BackgroundProcess {
 public:
  /// The error names the program that could not be run.
  static Result<BackgroundProcess> start(const Command& command, StandardDescriptors descriptors);

  BackgroundProcess(BackgroundProcess&& other) noexcept;
  BackgroundProcess(const BackgroundProcess&) = delete;
  BackgroundProcess& operator=(const BackgroundProcess&) = delete;
  BackgroundProcess& operator=(BackgroundProcess&& other) noexcept;
  ~BackgroundProcess();

  /// std::nullopt while it runs. Do not call it again after it has returned a value.
  [[nodiscard]] std::optional<ProcessEnd> ended();

 private:
  BackgroundProcess() = default;
  void end();

  pid_t pid_ = 0;  // 0 once it has ended
  std::chrono::steady_clock::time_point start_;
};

struct ProgramOutput {
  std::string text;
  std::optional<int> exit_code;  ///< std::nullopt if a signal ended it
};

/// Runs a program, found in PATH, with an empty stdin and this process's stderr. An error if it does not start, or does
/// not end in time: then it is killed.
[[nodiscard]] Result<ProgramOutput> program_output(std::vector<std::string> words, std::chrono::seconds patience);

}  // namespace tidemark
