// The program that `tidemark run` starts: how it is found, what reaches it, and how it ends.
#include "launch/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "launch/environment.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;

using Words = std::vector<std::string>;

/// What a process printed and how it ended.
struct Outcome {
  int status = -1;
  std::string output;

  [[nodiscard]] int exit_code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }
  [[nodiscard]] int signal() const { return WIFSIGNALED(status) ? WTERMSIG(status) : 0; }
};

/// What `tidemark run` does, without recording.
[[noreturn]] void run_as_parent(const Words& command, const Words& environment) {
  ChildProcess child = ChildProcess::start(command, environment);
  if (!child) {
    const std::string line = child.error().message + "\n";
    if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) ::_exit(99);
    ::_exit(child.exit_code_if_not_started());
  }
  while (!child.ended()) {
    pollfd signals{child.signal_fd(), POLLIN, 0};
    ::poll(&signals, 1, -1);
    child.handle_signals();
  }
  ::_exit(child.pass_on_status());
}

/// A process of its own that runs `command` in this way: starting a child changes the process's signal mask.
class Parent {
 public:
  explicit Parent(const Words& command, const Words& environment = {}) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      run_as_parent(command, environment);
    }
    ::close(ends[1]);
    output_ = ends[0];
  }
  ~Parent() { ::close(output_); }
  Parent(const Parent&) = delete;
  Parent& operator=(const Parent&) = delete;

  /// Waits until the program has printed a line.
  std::string line() {
    std::string text;
    for (char c = 0; ::read(output_, &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }
  void send(int signal) const { ::kill(pid_, signal); }
  Outcome wait() {
    Outcome outcome;
    std::array<char, 4096> part{};
    for (ssize_t got = 0; (got = ::read(output_, part.data(), part.size())) > 0;) {
      outcome.output.append(part.data(), static_cast<std::size_t>(got));
    }
    ::waitpid(pid_, &outcome.status, 0);
    return outcome;
  }

 private:
  pid_t pid_ = -1;
  int output_ = -1;
};

Outcome shell(const std::string& script, const Words& environment = {}) {
  return Parent({"sh", "-c", script}, environment).wait();
}

TEST(ChildProcessTest, ExitCodesAreTheProgramsOwn) {
  for (const int code : {0, 1, 42, 127, 255}) EXPECT_EQ(shell("exit " + std::to_string(code)).exit_code(), code);
}

TEST(ChildProcessTest, OutputArgumentsAndEnvironmentAreTheProgramsOwn) {
  EXPECT_EQ(Parent({"printf", "%s|", "a b", "", "$HOME"}).wait().output, "a b||$HOME|");
  EXPECT_EQ(shell("printf '%s %s' \"$TIDE_A\" \"$TIDE_B\"", {"TIDE_A=x=y", "TIDE_B="}).output, "x=y ");
}

TEST(ChildProcessTest, DiesOfTheSameSignal) {
  for (const int signal : {SIGTERM, SIGKILL, SIGINT, SIGSEGV, SIGABRT, SIGPIPE}) {
    EXPECT_EQ(shell("kill -" + std::to_string(signal) + " $$").signal(), signal);
  }
}

TEST(ChildProcessTest, AProgramThatIsNotThere) {
  const Outcome outcome = Parent({"no-such-program-anywhere"}).wait();
  EXPECT_EQ(outcome.exit_code(), 127);
  EXPECT_EQ(outcome.output, "cannot run no-such-program-anywhere: No such file or directory\n");
}

TEST(ChildProcessTest, AFileThatIsNoProgram) {
  const std::string path = ::testing::TempDir() + "tidemark_no_program_" + std::to_string(::getpid());
  std::ofstream(path) << "data";
  const Outcome outcome = Parent({path}).wait();
  EXPECT_EQ(outcome.exit_code(), 126);
  EXPECT_THAT(outcome.output, HasSubstr("Permission denied"));
  std::filesystem::remove(path);
}

TEST(ChildProcessTest, SignalsSentToUsReachTheProgram) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGALRM}) {
    const std::string number = std::to_string(signal);
    Parent parent({"sh", "-c",
                   "trap 'echo got " + number + "; exit 7' " + number + "; echo ready; while :; do sleep 0.01; done"});
    ASSERT_EQ(parent.line(), "ready");
    parent.send(signal);
    const Outcome outcome = parent.wait();
    EXPECT_EQ(outcome.output, "got " + number + "\n");
    EXPECT_EQ(outcome.exit_code(), 7);
  }
}

TEST(ChildProcessTest, AProgramThatIgnoresASignalGoesOn) {
  Parent parent({"sh", "-c", "trap '' TERM; echo ready; sleep 0.2; exit 5"});
  ASSERT_EQ(parent.line(), "ready");
  parent.send(SIGTERM);
  EXPECT_EQ(parent.wait().exit_code(), 5);
}

TEST(ChildProcessTest, AProgramWithoutAHandlerDiesOfIt) {
  Parent parent({"sh", "-c", "echo ready; exec sleep 30"});
  ASSERT_EQ(parent.line(), "ready");
  parent.send(SIGTERM);
  EXPECT_EQ(parent.wait().signal(), SIGTERM);
}

// The program starts with the signal mask that we were given, and with the ignored signals.
TEST(ChildProcessTest, TheProgramsSignalsAreAsTheyWere) {
  const auto signals = [](const std::string& status, const std::string& name) {
    const auto at = status.find(name + ":");
    return at == std::string::npos ? std::string("?") : status.substr(at, status.find('\n', at) - at);
  };
  const auto before = ::signal(SIGXFSZ, SIG_DFL);
  for (const auto disposition : {SIG_DFL, SIG_IGN}) {
    ::signal(SIGXFSZ, disposition);
    const Outcome outcome = Parent({"cat", "/proc/self/status"}).wait();
    std::ifstream file("/proc/self/status");
    const std::string own(std::istreambuf_iterator<char>(file), {});
    EXPECT_EQ(signals(outcome.output, "SigBlk"), signals(own, "SigBlk"));
    EXPECT_EQ(signals(outcome.output, "SigIgn"), signals(own, "SigIgn"));
  }
  ::signal(SIGXFSZ, before);
}

TEST(PreloadVariable, KeepsWhatIsPreloadedAlready) {
  ::unsetenv("LD_PRELOAD");
  EXPECT_EQ(preload_variable("/lib/ours.so"), "LD_PRELOAD=/lib/ours.so");
  ::setenv("LD_PRELOAD", "", 1);
  EXPECT_EQ(preload_variable("/lib/ours.so"), "LD_PRELOAD=/lib/ours.so");
  ::setenv("LD_PRELOAD", "/lib/theirs.so /lib/b.so", 1);
  EXPECT_EQ(preload_variable("/lib/ours.so"), "LD_PRELOAD=/lib/ours.so:/lib/theirs.so /lib/b.so");
  ::unsetenv("LD_PRELOAD");
}

}  // namespace
}  // namespace tidemark
