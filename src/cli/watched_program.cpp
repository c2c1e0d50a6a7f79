#include "cli/watched_program.h"

#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>

#include "launch/background_process.h"

namespace tidemark::cli {

Result<void> WatchedProgram::start(const std::vector<std::string>& program) {
  tidemark::Command command{.words = {"tidemark", "run", "--"}, .file = "/proc/self/exe"};
  command.words.insert(command.words.end(), program.begin(), program.end());
  const int error = execute(
      command, [] {}, pid_);
  if (error != 0) return Error{std::string("cannot start tidemark run: ") + std::strerror(error)};
  return {};
}

bool WatchedProgram::ended() {
  if (!ended_) ended_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
  return ended_;
}

void WatchedProgram::pass_on(int signal, bool from_terminal) const {
  if (!ended_ && !from_terminal) ::kill(pid_, signal);
}

int WatchedProgram::wait() {
  while (!ended_) {
    const pid_t pid = ::waitpid(pid_, &status_, 0);
    if (pid < 0 && errno == EINTR) continue;
    ended_ = true;
  }
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

}  // namespace tidemark::cli
