// Background programs: their output, their end, and the end of their remaining processes.
#include "launch/background_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "base/scoped_fd.h"
#include "launch/passed_signals.h"
#include "temporary_folder.h"

namespace tidemark {
namespace {

using namespace std::chrono_literals;
using testing::TemporaryFolder;

std::string contents_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// A script whose output goes into the file `output` of a folder.
BackgroundProcess start_script(const TemporaryFolder& folder, const std::string& script) {
  const auto output = open_output(folder.at("output"));
  auto process = BackgroundProcess::start({{"sh", "-c", script}, {"TIDE_A=b c"}}, {output->get(), output->get()});
  return std::move(*process);
}

ProcessEnd end_of(BackgroundProcess& process) {
  for (;;) {
    if (const auto end = process.ended()) return *end;
    std::this_thread::sleep_for(1ms);
  }
}

// The output of all processes that a script starts, until the last one ends; `end_it` is called once the first line
// arrives.
template <typename EndIt>
std::string output_of_all(const std::string& script, const EndIt& end_it) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const ScopedFd reader(ends[0]);
  std::optional<BackgroundProcess> process;
  {
    const ScopedFd writer(ends[1]);
    auto started = BackgroundProcess::start({{"sh", "-c", script}}, {writer.get(), writer.get()});
    process.emplace(std::move(*started));
  }
  std::string text;
  for (char letter = 0; ::read(reader.get(), &letter, 1) == 1;) {
    text += letter;
    if (letter == '\n') end_it(process);
  }
  return text;
}

TEST(BackgroundProcessTest, ReportsHowItEnded) {
  const TemporaryFolder folder;
  BackgroundProcess process = start_script(folder, "printf \"$TIDE_A \"; printf d >&2; cat; exit 3");
  const ProcessEnd end = end_of(process);
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_FALSE(end.ending_signal);
  EXPECT_GT(end.duration_ns, 0U);
  EXPECT_GT(end.host_bytes, 0U);
  EXPECT_EQ(contents_of(folder.at("output")), "b c d");
  process = start_script(folder, "kill -KILL $$");
  const ProcessEnd killed = end_of(process);
  EXPECT_FALSE(killed.exit_code);
  EXPECT_EQ(killed.ending_signal, SIGKILL);
}

TEST(BackgroundProcessTest, ErrorNamesTheProgram) {
#ifdef TIDEMARK_SPAWN_NEVER_FAILS
  GTEST_SKIP() << "posix_spawn() does not fail with ThreadSanitizer";
#endif
  const auto process = BackgroundProcess::start({{"no-such-program-anywhere"}}, {});
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error().message, "cannot run no-such-program-anywhere: No such file or directory");
}

TEST(ProgramOutput, HasAnEnd) {
  EXPECT_EQ(program_output({"printf", "a b"}, std::chrono::seconds(60))->text, "a b");
  const auto endless = program_output({"yes"}, std::chrono::hours(1));
  EXPECT_EQ(endless.error().message, "yes answered with more than 64 MiB");
}

TEST(BackgroundProcessTest, EndsWithItsObjectAndChildren) {
  const auto remove = [](std::optional<BackgroundProcess>& process) { process.reset(); };
  EXPECT_EQ(output_of_all("sleep 600 & echo started; wait; echo not killed", remove), "started\n");
}

TEST(BackgroundProcessTest, LeavesNothingWhenItHasEnded) {
  const auto wait = [](std::optional<BackgroundProcess>& process) { EXPECT_EQ(end_of(*process).exit_code, 0); };
  EXPECT_EQ(output_of_all("sleep 600 & echo started", wait), "started\n");
}

TEST(ProgramOutputTest, IsWhatItWrites) {
  const auto output = program_output({"sh", "-c", "echo answer; exit 4"}, 60s);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->text, "answer\n");
  EXPECT_EQ(output->exit_code, 4);
}

TEST(ProgramOutputTest, IsNotWaitedForForever) {
  const auto output = program_output({"sh", "-c", "exec sleep 600"}, 0s);
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().message, "sh did not answer within 0 s");
}

// Runs in a separate process; returns its exit code, or below 0 the signal that ended it.
template <typename Work>
int in_a_process(const Work& work) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(work());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(StopSignalsTest, AreDeliveredAtTheEnd) {
  const auto stopped_by = [](int signal) {
    return in_a_process([signal] {
      {
        StopSignals signals;
        if (signals.stopped()) return 1;
        ::raise(signal);
        if (!signals.stopped()) return 2;
      }
      return 3;
    });
  };
  EXPECT_EQ(stopped_by(SIGINT), -SIGINT);
  EXPECT_EQ(stopped_by(SIGTERM), -SIGTERM);
}

TEST(StopSignalsTest, AreNotDeliveredIfTaken) {
  const int code = in_a_process([] {
    StopSignals signals;
    ::raise(SIGHUP);
    signals.wait(60s);
    return signals.take().value_or(0);
  });
  EXPECT_EQ(code, SIGHUP);
}

TEST(StopSignalsTest, LeaveIgnoredSignalsAlone) {
  const int code = in_a_process([] {
    ::signal(SIGHUP, SIG_IGN);  // as nohup does
    StopSignals signals;
    ::raise(SIGHUP);
    return signals.stopped() ? 1 : 0;
  });
  EXPECT_EQ(code, 0);
}

TEST(StopSignalsTest, WaitForTheEndOfAChild) {
  const int code = in_a_process([] {
    StopSignals signals;
    if (::fork() == 0) ::_exit(0);
    signals.wait(600s);
    return signals.stopped() ? 1 : 0;
  });
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace tidemark
