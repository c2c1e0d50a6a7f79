// A process that acts like `tidemark run`, without recording.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "launch/child_process.h"

namespace tidemark::testing {

using Words = std::vector<std::string>;

/// The output of a process and how it ended.
struct Outcome {
  int status = -1;
  std::string output;

  [[nodiscard]] int exit_code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }
  [[nodiscard]] int signal() const { return WIFSIGNALED(status) ? WTERMSIG(status) : 0; }
};

/// Acts like `tidemark run`, without recording.
[[noreturn]] inline void run_as_parent(const Words& command, const Words& environment) {
  ChildProcess child;
  child.start(command, environment);
  if (!child) {
    const std::string line = child.error().message + "\n";
    if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) ::_exit(99);
    ::_exit(child.exit_code_if_not_started());
  }
  while (!child.ended()) {
    child.wait_for_signals();
    child.handle_signals();
  }
  ::_exit(child.pass_on_status());
}

/// A separate process that runs `command` in this way: starting a child changes the process's signal mask.
class Parent {
 public:
  /// `prepare` is called in it first.
  explicit Parent(
      const Words& command, const Words& environment = {}, const std::function<void()>& prepare = [] {}) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      prepare();
      run_as_parent(command, environment);
    }
    ::close(ends[1]);
    output_ = ends[0];
  }
  ~Parent() { ::close(output_); }
  Parent(const Parent&) = delete;
  Parent& operator=(const Parent&) = delete;

  /// Waits until the program has printed a line.
  std::string line() {
    std::string text;
    for (char c = 0; ::read(output_, &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void send(int signal) const { ::kill(pid_, signal); }
  Outcome wait() {
    Outcome outcome;
    std::array<char, 4096> part{};
    for (ssize_t got = 0; (got = ::read(output_, part.data(), part.size())) > 0;) {
      outcome.output.append(part.data(), static_cast<std::size_t>(got));
    }
    ::waitpid(pid_, &outcome.status, 0);
    return outcome;
  }

 private:
  pid_t pid_ = -1;
  int output_ = -1;
};

}  // namespace tidemark::testing
