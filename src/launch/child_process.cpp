#include "launch/child_process.h"

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "launch/background_process.h"

namespace tidemark {

void ChildProcess::start(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                         const std::function<void()>& prepare) {
  const int error = execute(
      {command, environment},
      [&] {
        signals_.restore();
        if (prepare) prepare();
      },
      pid_);
  if (error != 0) {
    const bool is_script = command.front().ends_with(".py") && ::access(command.front().c_str(), F_OK) == 0;
    error_ = {is_script
                  ? fmt::format("cannot run {0}: it is a Python script; put its interpreter before it: python {0}",
                                command.front())
                  : fmt::format("cannot run {}: {}", command.front(), std::strerror(error))};
    exit_code_if_not_started_ = error == ENOENT ? 127 : 126;
    return;
  }
  // From here on this process only records: it should not push the program off a core, because the rings give it time.
  const sched_param none{};
  ::sched_setscheduler(0, SCHED_BATCH, &none);
}

void ChildProcess::handle_signals() {
  if (ended_) return;
  signals_.pass_on(pid_);
  ended_ = ::waitpid(pid_, &status_, WNOHANG) != 0;
  if (ended_) signals_.stop();
}

std::optional<int> ChildProcess::exit_code() const {
  return WIFSIGNALED(status_) ? std::nullopt : std::optional(WEXITSTATUS(status_));
}

std::optional<int> ChildProcess::ending_signal() const {
  return WIFSIGNALED(status_) ? std::optional(WTERMSIG(status_)) : std::nullopt;
}

int ChildProcess::pass_on_status() const {
  if (const auto code = exit_code()) return *code;
  const int number = WTERMSIG(status_);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);  // only the program's own core is useful
  ::signal(number, SIG_DFL);
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, number);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ::kill(::getpid(), number);
  return 128 + number;
}

}  // namespace tidemark
