#include "launch/program_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/scoped_fd.h"

extern char** environ;  // NOLINT: POSIX asks for this declaration

namespace tidemark {
namespace {

using Clock = std::chrono::steady_clock;

// Reads until the end. False when patience is over before.
bool read_all(const ScopedFd& fd, std::chrono::seconds patience, std::string& text) {
  const Clock::time_point deadline = Clock::now() + patience;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd entry{fd.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&entry, 1, static_cast<int>(left)) == 0) return false;
    std::array<char, 4096> part{};
    const ssize_t got = ::read(fd.get(), part.data(), part.size());
    if (got <= 0) return true;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

Result<ProgramOutput> program_output(std::vector<std::string> words, std::chrono::seconds patience) {
  const std::string& program = words.front();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error{fmt::format("cannot run {}: {}", program, std::strerror(errno))};
  }
  const ScopedFd answers(ends[0]);
  ScopedFd answers_end(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, answers_end.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int failed = ::posix_spawnp(&pid, program.c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  answers_end.reset();
  if (failed != 0) return Error{fmt::format("cannot run {}: {}", program, std::strerror(failed))};
  ProgramOutput output;
  const bool in_time = read_all(answers, patience, output.text);
  if (!in_time) ::kill(pid, SIGKILL);
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (!in_time) return Error{fmt::format("{} did not answer within {} s", program, patience.count())};
  if (WIFEXITED(status)) output.exit_code = WEXITSTATUS(status);
  return output;
}

}  // namespace tidemark
