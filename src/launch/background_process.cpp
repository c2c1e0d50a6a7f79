#include "launch/background_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include "base/scoped_fd.h"

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

// The variables of this process and those in `added`.
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

// If the child cannot execute the program, it writes the reason to `error`. On Linux it may make system calls and write
// to this process's memory, as the child of posix_spawn() does. posix_spawn() itself cannot restore limits, set
// PR_SET_PDEATHSIG or run a script without a first line.
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

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatienceToEnd{3};  // for a process that was told to end
constexpr std::chrono::milliseconds kPauseToEnd{20};

// All other descriptors are closed on exec: libraries open some (libcurl its connections, drivers their devices) that
// would be inherited. Linux 5.11.
void keep_standard_descriptors() {
#ifdef SYS_close_range
  constexpr unsigned kWhenExecuted = 1U << 2;  // CLOSE_RANGE_CLOEXEC
  ::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, kWhenExecuted);
#endif
}

// Runs in the child, before it executes the program.
void become_background(pid_t parent, int nothing, StandardDescriptors descriptors) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);
  ::dup2(descriptors.in < 0 ? nothing : descriptors.in, STDIN_FILENO);
  ::dup2(descriptors.out < 0 ? nothing : descriptors.out, STDOUT_FILENO);
  ::dup2(descriptors.err < 0 ? nothing : descriptors.err, STDERR_FILENO);
  keep_standard_descriptors();
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

constexpr std::size_t kMaxOutput = std::size_t{64} << 20;  // of a program's output

// Reads until the end. False if the deadline passes before, or there is more than kMaxOutput.
bool read_all(const ScopedFd& fd, Clock::time_point deadline, std::string& text) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd entry{fd.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&entry, 1, static_cast<int>(left)) == 0) return false;
    std::array<char, 4096> part{};
    const ssize_t got = ::read(fd.get(), part.data(), part.size());
    if (got <= 0) return true;
    if (text.size() > kMaxOutput) return false;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

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

Result<ScopedFd> open_output(const std::string& path) {
  ScopedFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (fd) return fd;
  return Error{fmt::format("{}: cannot be written: {}", path, std::strerror(errno))};
}

Result<BackgroundProcess> BackgroundProcess::start(const Command& command, StandardDescriptors descriptors) {
  const ScopedFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  BackgroundProcess process;
  process.start_ = Clock::now();
  const pid_t parent = ::getpid();
  const int error = execute(
      command, [&] { become_background(parent, nothing.get(), descriptors); }, process.pid_);
  if (error != 0) return Error{fmt::format("cannot run {}: {}", command.words.front(), std::strerror(error))};
  return process;
}

BackgroundProcess::BackgroundProcess(BackgroundProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), start_(other.start_) {}

BackgroundProcess& BackgroundProcess::operator=(BackgroundProcess&& other) noexcept {
  end();
  pid_ = std::exchange(other.pid_, 0);
  start_ = other.start_;
  return *this;
}

BackgroundProcess::~BackgroundProcess() {
  end();
}

std::optional<ProcessEnd> BackgroundProcess::ended() {
  siginfo_t found{};
  if (pid_ == 0) return std::nullopt;
  const bool can_wait = ::waitid(P_PID, static_cast<id_t>(pid_), &found, WEXITED | WNOHANG | WNOWAIT) == 0;
  if (can_wait && found.si_pid == 0) return std::nullopt;
  ::kill(-pid_, SIGKILL);  // its remaining processes: the group's number is not reused before the wait
  int status = 0;
  rusage usage{};
  const pid_t ended = ::wait4(std::exchange(pid_, 0), &status, 0, &usage);
  ProcessEnd end;
  // If SIGCHLD is ignored, the kernel does not keep a child's status.
  if (ended > 0 && WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (ended > 0 && WIFSIGNALED(status)) end.ending_signal = WTERMSIG(status);
  end.duration_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - start_).count());
  end.host_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  return end;
}

// It may be a recorder, which handles SIGTERM and passes it on: the whole group gets SIGTERM, and processes that remain
// are killed.
void BackgroundProcess::end() {
  if (pid_ == 0) return;
  const pid_t group = pid_;
  ::kill(-group, SIGTERM);
  const auto deadline = Clock::now() + kPatienceToEnd;
  while (!ended() && Clock::now() < deadline) std::this_thread::sleep_for(kPauseToEnd);
  if (pid_ == 0) return;
  ::kill(-group, SIGKILL);
  ::waitpid(std::exchange(pid_, 0), nullptr, 0);
}

Result<ProgramOutput> program_output(std::vector<std::string> words, std::chrono::seconds patience) {
  const std::string program = words.front();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error{fmt::format("cannot run {}: {}", program, std::strerror(errno))};
  }
  const ScopedFd answers(ends[0]);
  ScopedFd answers_end(ends[1]);
  auto process = BackgroundProcess::start({std::move(words)}, {.out = answers_end.get()});
  if (!process) return process.error();
  answers_end.reset();
  const Clock::time_point deadline = Clock::now() + patience;
  ProgramOutput output;
  bool in_time = read_all(answers, deadline, output.text);
  while (in_time) {
    if (const auto end = process->ended()) {
      output.exit_code = end->exit_code;
      return output;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    in_time = Clock::now() < deadline;
  }
  if (output.text.size() > kMaxOutput) return Error{fmt::format("{} answered with more than 64 MiB", program)};
  return Error{fmt::format("{} did not answer within {} s", program, patience.count())};
}

}  // namespace tidemark
