#include "launch/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace tidemark {
namespace {

// What someone may send to us but means for the program.
constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGALRM, SIGCONT};

sigset_t handled_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGCHLD);
  for (const int signal : kPassedOn) ::sigaddset(&set, signal);
  return set;
}

// In the child, between fork and exec. Reports errno through `report` when exec fails.
[[noreturn]] void become(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                         const sigset_t& mask, sighandler_t file_limit_handler, int report) {
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::signal(SIGXFSZ, file_limit_handler);
  for (const std::string& variable : environment) {
    const auto equals = variable.find('=');
    ::setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
  }
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  const int error = errno;
  const ssize_t written = ::write(report, &error, sizeof(error));
  (void)written;
  ::_exit(127);
}

}  // namespace

ChildProcess ChildProcess::start(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  ChildProcess child;
  // A file size limit is a write error to be reported, not our death.
  const sighandler_t file_limit_handler = ::signal(SIGXFSZ, SIG_IGN);
  const sigset_t handled = handled_signals();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &handled, &before);
  child.signals_.reset(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  int ends[2];
  if (!child.signals_ || ::pipe2(ends, O_CLOEXEC) != 0) {
    child.error_ = {fmt::format("cannot start a program: {}", std::strerror(errno))};
    return child;
  }
  const ScopedFd report(ends[0]);
  ScopedFd report_end(ends[1]);
  const pid_t pid = ::fork();
  if (pid == 0) become(command, environment, before, file_limit_handler, report_end.get());
  int error = pid < 0 ? errno : 0;
  report_end.reset();  // the child's own closes when it executes the program
  if (pid > 0 && ::read(report.get(), &error, sizeof(error)) == static_cast<ssize_t>(sizeof(error))) {
    ::waitpid(pid, nullptr, 0);
  } else if (pid > 0) {
    child.pid_ = pid;
  }
  if (!child) {
    child.error_ = {fmt::format("cannot run {}: {}", command.front(), std::strerror(error))};
    child.exit_code_if_not_started_ = error == ENOENT ? 127 : 126;
    return child;
  }
  // From here on this process only records: it should not push the program off a core, the rings give it time.
  const sched_param none{};
  ::sched_setscheduler(0, SCHED_BATCH, &none);
  return child;
}

void ChildProcess::handle_signals() {
  signalfd_siginfo signal{};
  while (::read(signals_.get(), &signal, sizeof(signal)) == static_cast<ssize_t>(sizeof(signal))) {
    if (signal.ssi_signo == SIGCHLD) {
      int status = 0;
      if (!ended_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
        status_ = status;
        ended_ = true;
      }
    } else if (!ended_ && signal.ssi_code <= 0) {
      // Sent by a process. What a terminal sends (code > 0) goes to the whole foreground group, the program included.
      ::kill(pid_, static_cast<int>(signal.ssi_signo));
    }
  }
}

int ChildProcess::pass_on_status() const {
  if (!WIFSIGNALED(status_)) return WEXITSTATUS(status_);
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
