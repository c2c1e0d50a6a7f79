// Programs that this process starts: one that works for us and ends with us, and one that answers a question on its
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
  std::string file = {};                      ///< what is executed where it is not the first word, looked up in PATH
};

/// Starts a program. `prepare` runs in the child, which shares the memory of this process until then: it may make
/// system calls and nothing else. Takes no descriptor. 0, or the error as posix_spawnp() returns it.
[[nodiscard]] int execute(const Command& command, const std::function<void()>& prepare, pid_t& pid);

/// Descriptors that become stdout, stderr and stdin of a program. Below 0: nothing, as of /dev/null.
struct StandardDescriptors {
  int out = STDOUT_FILENO;
  int err = STDERR_FILENO;
  int in = -1;
};

/// A new, empty file for the output of a program.
[[nodiscard]] Result<ScopedFd> open_output(const std::string& path);

struct ProcessEnd {
  std::optional<int> exit_code;      ///< none when a signal ended it
  std::optional<int> ending_signal;  ///< none when it exited
  std::uint64_t duration_ns = 0;
  std::uint64_t host_bytes = 0;  ///< the highest resident memory of one of its processes
};

/// A child in a process group of its own, in which no signal is blocked, with no descriptors but the standard ones. It
/// gets SIGTERM when this process goes; its group is ended with this object, and what it left of its group when it has
/// ended. Move-only.
class BackgroundProcess {
 public:
  /// The error says which program could not be run.
  static Result<BackgroundProcess> start(const Command& command, StandardDescriptors descriptors);

  BackgroundProcess(BackgroundProcess&& other) noexcept;
  BackgroundProcess(const BackgroundProcess&) = delete;
  BackgroundProcess& operator=(const BackgroundProcess&) = delete;
  BackgroundProcess& operator=(BackgroundProcess&& other) noexcept;
  ~BackgroundProcess();

  /// None while it runs. To be called once more only while it returned none.
  [[nodiscard]] std::optional<ProcessEnd> ended();

 private:
  BackgroundProcess() = default;
  void end();

  pid_t pid_ = 0;  // 0 once it has ended
  std::chrono::steady_clock::time_point start_;
};

struct ProgramOutput {
  std::string text;
  std::optional<int> exit_code;  ///< none when a signal ended it
};

/// Runs a program, found in PATH, with an empty stdin; its stderr is this process'. An error when it does not start, or
/// does not end in time: then it is killed.
[[nodiscard]] Result<ProgramOutput> program_output(std::vector<std::string> words, std::chrono::seconds patience);

}  // namespace tidemark
