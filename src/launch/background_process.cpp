#include "launch/background_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

namespace tidemark {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatienceToEnd{3};  // with a process that was asked to end
constexpr std::chrono::milliseconds kPauseToEnd{20};

// In the child, before it executes the program.
void become_background(pid_t parent, int nothing, StandardDescriptors descriptors) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);
  ::dup2(descriptors.in < 0 ? nothing : descriptors.in, STDIN_FILENO);
  ::dup2(descriptors.out < 0 ? nothing : descriptors.out, STDOUT_FILENO);
  ::dup2(descriptors.err < 0 ? nothing : descriptors.err, STDERR_FILENO);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace

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
  int status = 0;
  rusage usage{};
  const pid_t ended = pid_ != 0 ? ::wait4(pid_, &status, WNOHANG, &usage) : 0;
  if (ended == 0) return std::nullopt;
  ::kill(-std::exchange(pid_, 0), SIGKILL);  // what it may have left
  ProcessEnd end;
  // Where SIGCHLD is ignored, the kernel does not keep how a child ended.
  if (ended > 0 && WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (ended > 0 && WIFSIGNALED(status)) end.ending_signal = WTERMSIG(status);
  end.duration_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - start_).count());
  end.host_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  return end;
}

// It may be a recorder, which keeps SIGTERM for itself and passes it on: asked to end are all, and those that do not
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

}  // namespace tidemark
