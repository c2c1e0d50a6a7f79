// Signals: each reaches the program once, whichever process it was sent to, and their settings are unchanged.
#include "launch/passed_signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "parent.h"

namespace tidemark {
namespace {

using testing::Outcome;
using testing::Parent;
using testing::Words;

// Sent to the process known to the shell after the tested signals: when it arrives, those have been passed on.
constexpr int kLast = 64;

/// The content of a file of /proc; "" if its process ends before it is read (the read fails with ESRCH then).
std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(text).str();
}

void lead_a_group() {
  ::setpgid(0, 0);
}

/// signal_printer, started like by `tidemark run`, at the head of a process group.
class Printer {
 public:
  explicit Printer(const Words& options = {}, const std::function<void()>& prepare = lead_a_group)
      : parent_(command(options), {}, prepare) {
    EXPECT_EQ(parent_.line(), "ready");
  }
  ~Printer() {
    parent_.send(kLast);
    ::kill(-parent_.pid(), SIGKILL);
    parent_.wait();
  }
  Printer(const Printer&) = delete;
  Printer& operator=(const Printer&) = delete;

  [[nodiscard]] pid_t pid() const { return parent_.pid(); }
  std::string line() { return parent_.line(); }
  /// The signals that the program received since the last call, as "2 15 ".
  std::string got() {
    parent_.send(kLast);
    std::string numbers;
    for (std::string number; (number = line()) != std::to_string(kLast) && !number.empty();) numbers += number + " ";
    return numbers;
  }

 private:
  static Words command(Words options) {
    options.insert(options.begin(), SIGNAL_PRINTER);
    return options;
  }

  Parent parent_;
};

// ThreadSanitizer calls the handler of these at once, even in the middle of its own work, which ends the process now
// and then; it delays the others until that is done.
bool is_unsafe(int signal) {
#ifdef TIDEMARK_WITH_THREAD_SANITIZER
  return signal == SIGSYS || signal == SIGTRAP || signal == SIGSEGV || signal == SIGBUS || signal == SIGILL ||
         signal == SIGABRT || signal == SIGFPE || signal == SIGPIPE;
#else
  (void)signal;
  return false;
#endif
}

// All signals that may be sent and neither stop a process nor always end it. 32 and 33 are the C library's own.
std::vector<int> signals_to_pass_on() {
  std::vector<int> signals;
  for (int signal = 1; signal < kLast; ++signal) {
    const bool stops = signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
    if (!stops && !is_unsafe(signal) && signal != SIGKILL && signal != SIGCHLD && signal != 32 && signal != 33)
      signals.push_back(signal);
  }
  return signals;
}

TEST(PassedSignals, EachSignalToUsReachesTheProgram) {
  Printer printer;
  for (const int signal : signals_to_pass_on()) {
    ::kill(printer.pid(), signal);
    EXPECT_EQ(printer.got(), std::to_string(signal) + " ");
  }
}

TEST(PassedSignals, ASignalToTheGroupReachesTheProgramOnce) {
  for (const auto& prepare : {lead_a_group, +[] { ::setsid(); }}) {
    Printer printer({}, prepare);
    for (int round = 0; round < 20; ++round) {
      for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGXCPU, SIGRTMIN}) {
        ::kill(-printer.pid(), signal);
        EXPECT_EQ(printer.got(), std::to_string(signal) + " ") << "round " << round;
      }
    }
  }
}

TEST(PassedSignals, OneToUsAndOneToTheGroup) {
  Printer printer;
  ::kill(-printer.pid(), SIGINT);
  ::kill(printer.pid(), SIGTERM);
  EXPECT_EQ(printer.got(), "2 15 ");
  ::kill(printer.pid(), SIGINT);
  EXPECT_EQ(printer.got(), "2 ");
}

TEST(PassedSignals, ValuesAreKeptAndRealTimeSignalsAreCounted) {
  Printer printer;
  for (const int value : {7, 8, 9}) ::sigqueue(printer.pid(), SIGRTMIN + 1, {.sival_int = value});
  EXPECT_EQ(printer.got(), "35 value 7 35 value 8 35 value 9 ");
}

TEST(PassedSignals, ProgramOutsideTheGroupGetsItsSignals) {
  Printer printer({"leave-group"});
  ::kill(-printer.pid(), SIGTERM);
  EXPECT_EQ(printer.got(), "15 ");
}

// As in `perl -e 'alarm 5; exec @ARGV' tidemark run ...`: an interval timer survives exec and is not inherited by the
// child.
TEST(PassedSignals, AnAlarmSetBeforeUsEndsTheProgram) {
  for (const int delay_ms : {50, 500, 5'000, 50'000}) {
    Parent parent({SIGNAL_PRINTER}, {}, [delay_ms] {
      lead_a_group();
      const itimerval timer{{}, {delay_ms / 1000, delay_ms % 1000 * 1000}};
      ::setitimer(ITIMER_REAL, &timer, nullptr);
    });
    const bool in_time = parent.line() == "ready";  // on a busy machine the alarm may come before
    if (in_time) {
      EXPECT_EQ(parent.line(), std::to_string(SIGALRM));
    }
    parent.send(kLast);
    ::kill(-parent.pid(), SIGKILL);
    parent.wait();
    if (in_time) return;
  }
  FAIL() << "the program did not start in 50 s";
}

TEST(PassedSignals, SignalsToTheParentAreNotPassedBack) {
  Parent parent({"sh", "-c", "kill -USR1 $PPID; kill -TERM $PPID; sleep 0.05; exit 5"});
  EXPECT_EQ(parent.wait().exit_code(), 5);
}

// Without room for a witness: signals sent by a process are passed on.
TEST(PassedSignals, NoFreeDescriptor) {
  Printer printer({}, [] {
    lead_a_group();
    const rlimit few{16, 16};
    ::setrlimit(RLIMIT_NOFILE, &few);
    while (::open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {  // the program itself has room again
    }
  });
  ::kill(printer.pid(), SIGTERM);
  EXPECT_EQ(printer.got(), "15 ");
}

/// Pids of the processes of a group, by their names.
std::map<std::string, pid_t> members(pid_t group) {
  std::map<std::string, pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string stat = text_of(entry.path() / "stat");  // pid (name) state parent group
    const auto open = stat.find('(');
    const auto close = stat.rfind(')');
    if (close == std::string::npos) continue;
    std::istringstream rest(stat.substr(close + 1));
    std::string state;
    pid_t parent = 0;
    pid_t its_group = 0;
    rest >> state >> parent >> its_group;
    if (its_group == group && state != "Z") found[stat.substr(open + 1, close - open - 1)] = std::stoi(pid);
  }
  return found;
}

TEST(GroupWitness, HasItsOwnNameAndEndsWithItsParent) {
  Parent parent({"sh", "-c", "echo ready; exec sleep 60"}, {}, lead_a_group);
  ASSERT_EQ(parent.line(), "ready");
  const auto found = members(parent.pid());
  ASSERT_TRUE(found.contains("signal-witness"));
  const std::string words = text_of("/proc/" + std::to_string(found.at("signal-witness")) + "/cmdline");
  EXPECT_EQ(words.substr(0, words.find('\0')), "signal-witness");
  EXPECT_EQ(words.find("child_process_test"), std::string::npos);
  parent.send(SIGKILL);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto is_there = [&] { return members(parent.pid()).contains("signal-witness"); };
  while (is_there() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_FALSE(is_there());
  ::kill(-parent.pid(), SIGKILL);
  parent.wait();
}

TEST(GroupWitness, WithoutItTheProgramGetsTheSignalAllTheSame) {
  Printer printer;
  const auto found = members(printer.pid());
  ASSERT_TRUE(found.contains("signal-witness"));
  ::kill(found.at("signal-witness"), SIGKILL);
  ::kill(printer.pid(), SIGTERM);
  EXPECT_EQ(printer.got(), "15 ");
}

TEST(PassedSignals, AProgramThatIgnoresASignalGoesOn) {
  Parent parent({"sh", "-c", "trap '' TERM; echo ready; sleep 0.2; exit 5"});
  ASSERT_EQ(parent.line(), "ready");
  parent.send(SIGTERM);
  EXPECT_EQ(parent.wait().exit_code(), 5);
}

TEST(PassedSignals, AProgramWithoutAHandlerDiesOfIt) {
  Parent parent({"sh", "-c", "echo ready; exec sleep 30"});
  ASSERT_EQ(parent.line(), "ready");
  parent.send(SIGTERM);
  EXPECT_EQ(parent.wait().signal(), SIGTERM);
}

// The program starts with the signal mask, the ignored signals and the limits that this process was given.
TEST(PassedSignals, ProgramsSignalSettingsAreUnchanged) {
  const auto field = [](const std::string& status, const std::string& name) {
    const auto at = status.find(name + ":");
    return at == std::string::npos ? std::string("?") : status.substr(at, status.find('\n', at) - at);
  };
  const std::string own = text_of("/proc/self/status");
  for (const int ignored : {0, SIGXFSZ, SIGPIPE, SIGCHLD, SIGHUP}) {
    const Outcome outcome = Parent({"cat", "/proc/self/status", "/proc/self/limits"}, {}, [&] {
                              if (ignored != 0) ::signal(ignored, SIG_IGN);
                              const rlimit limit{1000, 2000};
                              ::setrlimit(RLIMIT_CPU, &limit);
                            }).wait();
    EXPECT_EQ(field(outcome.output, "SigBlk"), field(own, "SigBlk"));
    std::uint64_t expected = std::stoull(field(own, "SigIgn").substr(8), nullptr, 16);
    if (ignored != 0) expected |= std::uint64_t{1} << (ignored - 1);
    EXPECT_EQ(std::stoull(field(outcome.output, "SigIgn").substr(8), nullptr, 16), expected);
    EXPECT_NE(outcome.output.find("Max cpu time              1000                 2000 "), std::string::npos);
    EXPECT_EQ(outcome.exit_code(), 0) << "known, although SIGCHLD was ignored";
  }
}

}  // namespace
}  // namespace tidemark
