#include "launch/background_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>

namespace tidemark {
namespace {

constexpr std::array kHeld = {SIGINT, SIGTERM, SIGHUP};
constexpr std::chrono::milliseconds kTick{100};

}  // namespace

HeldSignals::HeldSignals() {
  ::sigemptyset(&held_);
  for (const int signal : kHeld) ::sigaddset(&held_, signal);
  ::pthread_sigmask(SIG_BLOCK, &held_, &before_);
}

HeldSignals::~HeldSignals() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool HeldSignals::any() const {
  sigset_t pending{};
  ::sigpending(&pending);
  return std::any_of(kHeld.begin(), kHeld.end(), [&](int signal) { return ::sigismember(&pending, signal) == 1; });
}

std::vector<char*> environment_with(const std::vector<std::string>& added) {
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view name = std::string_view(*variable).substr(0, std::string_view(*variable).find('=') + 1);
    const bool replaced = std::any_of(
        added.begin(), added.end(), [&](const std::string& other) { return !name.empty() && other.starts_with(name); });
    if (!replaced) variables.push_back(*variable);
  }
  for (const std::string& variable : added) variables.push_back(const_cast<char*>(variable.c_str()));
  variables.push_back(nullptr);
  return variables;
}

Result<int> run_in_background(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                              const std::string& log, const HeldSignals& signals, const std::function<void()>& tick) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  ::posix_spawnattr_setsigmask(&attributes, &signals.before());
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int failed =
      ::posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), environment_with(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return Error{fmt::format("cannot run {}: {}", command.front(), std::strerror(failed))};
  int status = 0;
  while (::waitpid(pid, &status, WNOHANG) == 0) {
    if (signals.any()) ::kill(-pid, SIGKILL);
    tick();
    std::this_thread::sleep_for(kTick);
  }
  ::kill(-pid, SIGKILL);  // what it may have left
  tick();
  if (signals.any()) return Error{"interrupted"};
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return Error{fmt::format("{} was ended by signal {}", command.front(), WTERMSIG(status))};
}

}  // namespace tidemark
