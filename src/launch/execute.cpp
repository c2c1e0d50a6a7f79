#include "launch/execute.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace tidemark {
namespace {

// Pointers to the strings, null at the end.
std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// The variables of this process with those in `added`.
std::vector<char*> environment_with(const std::vector<std::string>& added) {
  std::vector<char*> variables = pointers_to(added);
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view name = std::string_view(*variable).substr(0, std::string_view(*variable).find('=') + 1);
    const bool replaced = std::any_of(
        added.begin(), added.end(), [&](const std::string& other) { return !name.empty() && other.starts_with(name); });
    if (!replaced) variables.insert(variables.end() - 1, *variable);
  }
  return variables;
}

// The child says in `error` why it cannot execute the program. On Linux it may make system calls and write to our
// memory, as the one of posix_spawn() does, which would not restore limits, knows no PR_SET_PDEATHSIG and runs no
// script without a first line.
//
// NOLINTBEGIN(clang-analyzer-unix.Vfork,clang-analyzer-security.insecureAPI.vfork,bugprone-unsafe-functions)
pid_t start_child(const char* file, char* const* arguments, char* const* environment,
                  const std::function<void()>& prepare, volatile int* error) {
  const pid_t pid = ::vfork();
  if (pid == 0) {
    prepare();
    ::execvpe(file, arguments, environment);
    *error = errno;
    ::_exit(127);
  }
  if (pid < 0) *error = errno;
  return pid;
}
// NOLINTEND(clang-analyzer-unix.Vfork,clang-analyzer-security.insecureAPI.vfork,bugprone-unsafe-functions)

}  // namespace

int execute(const Command& command, const std::function<void()>& prepare, pid_t& pid) {
  const std::vector<char*> arguments = pointers_to(command.words);
  const std::vector<char*> environment = environment_with(command.environment);
  const char* const file = command.file.empty() ? arguments.front() : command.file.c_str();
  volatile int error = 0;
  const pid_t child = start_child(file, arguments.data(), environment.data(), prepare, &error);
  if (error == 0) {
    pid = child;
  } else if (child > 0) {
    ::waitpid(child, nullptr, 0);
  }
  return error;
}

}  // namespace tidemark
