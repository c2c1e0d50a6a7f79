#include "sweep/trial_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/scoped_fd.h"

namespace tidemark {
namespace {

constexpr std::chrono::seconds kPatience{3};  // with a trial that was asked to end

Result<ScopedFd> new_file(const std::string& path) {
  ScopedFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (fd) return fd;
  return Error{fmt::format("{}: cannot be written: {}", path, std::strerror(errno))};
}

[[noreturn]] void become(char* const* arguments, pid_t parent, int in, int out, int err) {
  sigset_t none;
  ::sigemptyset(&none);
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execv("/proc/self/exe", arguments);
  ::_exit(127);
}

}  // namespace

Result<TrialProcess> TrialProcess::start(const std::vector<std::string>& words, const std::string& folder) {
  const ScopedFd in(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const auto out = new_file(folder + "/result.json");
  if (!out) return out.error();
  const auto err = new_file(folder + "/output.log");
  if (!err) return err.error();
  std::string name = "tidemark";
  std::vector<char*> arguments{name.data()};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);

  TrialProcess trial;
  trial.start_ = std::chrono::steady_clock::now();
  const pid_t parent = ::getpid();
  trial.pid_ = ::fork();
  if (trial.pid_ == 0) become(arguments.data(), parent, in.get(), out->get(), err->get());
  if (trial.pid_ < 0) return Error{fmt::format("a trial cannot be started: {}", std::strerror(errno))};
  ::setpgid(trial.pid_, trial.pid_);  // as the child does itself: whoever comes first
  return trial;
}

TrialProcess::TrialProcess(TrialProcess&& other) noexcept : pid_(std::exchange(other.pid_, 0)), start_(other.start_) {}

TrialProcess& TrialProcess::operator=(TrialProcess&& other) noexcept {
  kill();
  pid_ = std::exchange(other.pid_, 0);
  start_ = other.start_;
  return *this;
}

TrialProcess::~TrialProcess() {
  kill();
}

std::optional<TrialEnd> TrialProcess::ended() {
  int status = 0;
  rusage usage{};
  if (pid_ == 0 || ::wait4(pid_, &status, WNOHANG, &usage) != pid_) return std::nullopt;
  pid_ = 0;
  TrialEnd end;
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  const auto took = std::chrono::steady_clock::now() - start_;
  end.duration_ns = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
  end.host_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  return end;
}

// The recorder keeps SIGTERM for itself and passes it on: asked to end are all, and those that do not are killed.
void TrialProcess::kill() {
  if (pid_ == 0) return;
  const pid_t group = pid_;
  ::kill(-group, SIGTERM);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!ended() && std::chrono::steady_clock::now() < deadline) {
    const timespec pause{0, 20'000'000};
    ::nanosleep(&pause, nullptr);
  }
  ::kill(-group, SIGKILL);
  if (pid_ != 0) ::waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

StopSignals::StopSignals() {
  ::sigemptyset(&kept_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::sigaddset(&kept_, signal);
  ::sigprocmask(SIG_BLOCK, &kept_, &before_);
}

StopSignals::~StopSignals() {
  const timespec none{};
  while (::sigtimedwait(&kept_, nullptr, &none) > 0) {
  }
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void StopSignals::wait(std::chrono::milliseconds most) {
  timespec time{most.count() / 1000, most.count() % 1000 * 1'000'000};
  const int signal = ::sigtimedwait(&kept_, nullptr, &time);
  if (signal > 0 && signal != SIGCHLD) stopped_ = signal;
}

}  // namespace tidemark
