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
namespace {

// The child shares our memory until it executes the program: it says in `error` why it cannot, which takes no
// descriptor. On Linux it may make system calls and write to that memory, as the one of posix_spawn() does, which would
// not restore limits and runs no script without a first line.
//
// NOLINTBEGIN(clang-analyzer-unix.Vfork,clang-analyzer-security.insecureAPI.vfork)
pid_t execute(char* const* arguments, char* const* environment, const PassedSignals& signals, volatile int* error) {
  const pid_t pid = ::vfork();
  if (pid == 0) {
    signals.restore();
    ::execvpe(arguments[0], arguments, environment);
    *error = errno;
    ::_exit(127);
  }
  if (pid < 0) *error = errno;
  return pid;
}
// NOLINTEND(clang-analyzer-unix.Vfork,clang-analyzer-security.insecureAPI.vfork)

}  // namespace

void ChildProcess::start(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  volatile int error = 0;
  const pid_t pid = execute(arguments.data(), environment_with(environment).data(), signals_, &error);
  if (error != 0) {
    if (pid > 0) ::waitpid(pid, nullptr, 0);
    error_ = {fmt::format("cannot run {}: {}", command.front(), std::strerror(error))};
    exit_code_if_not_started_ = error == ENOENT ? 127 : 126;
    return;
  }
  pid_ = pid;
  // From here on this process only records: it should not push the program off a core, the rings give it time.
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
  ::setrlimit(RLIMIT_CORE, &no_core);  // the program's own core is the useful one
  ::signal(number, SIG_DFL);
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, number);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ::kill(::getpid(), number);
  return 128 + number;
}

}  // namespace tidemark
