// What a recorder that keeps only the last part writes, and when.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "recorder_fixture.h"

namespace tidemark::testing {
namespace {

using namespace std::chrono_literals;

class RecorderDumpsTest : public RecorderTest {
 protected:
  RecorderDumpsTest() { count_kills(0); }
  ~RecorderDumpsTest() override {
    if (child <= 0) return;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  void create() {
    RecorderOptions options;
    options.output = folder.at("run.tide");
    options.stack_mode = "none";
    options.samples.enabled = false;
    options.samples.places.root = machine.path();
    options.keep = KeepOptions{{600'000'000'000, 0}, {true, true, true}, describe};
    auto created = Recorder::create(options, [this](const std::string& line) { said.push_back(line); });
    ASSERT_TRUE(created.ok()) << created.error().message;
    recorder = std::move(*created);
  }
  /// What the kernel says of the machine.
  void count_kills(int kills) const { machine.write("proc/vmstat", "oom_kill " + std::to_string(kills) + "\n"); }
  /// A child that records an event into each of so many rings, as one that calls exec, and waits.
  void start_child(int rings = 1) {
    child = ::fork();
    if (child != 0) return;
    for (int ring = 0; ring < rings; ++ring) {
      auto* process = new RingProcess(clock(), ring::ticks(clock()));
      RingThread thread(*process, 0, static_cast<std::uint32_t>(::getpid()));
      if (!thread.allocate(0, 1, 100)) ::_exit(1);
      hand_over(*process);
    }
    for (;;) ::pause();
  }
  template <typename Done>
  void poll_until(const Done& done) {
    for (int attempt = 0; attempt < 1000 && !done(); ++attempt) recorder->poll_once({});
    ASSERT_TRUE(done());
  }
  /// Until the recorder has seen it.
  void kill_child() {
    ::kill(child, SIGKILL);
    poll_until([&] { return recorder->open_files().empty(); });
  }
  std::vector<Dump> end(int exit_code) {
    recorder->finish(0ms);
    recorder->program_ended(exit_code);
    return recorder->take_dumps();
  }

  TemporaryFolder machine;
  std::function<std::vector<std::string>(const Dump&)> describe;
};

TEST_F(RecorderDumpsTest, AProcessThatCalledExecIsAVictimLater) {
  create();
  start_child(2);
  poll_until([&] { return !recorder->files().empty(); });  // of its first image
  count_kills(1);
  kill_child();
  const std::vector<Dump> dumps = end(137);
  ASSERT_EQ(dumps.size(), 1U);
  EXPECT_EQ(dumps[0].reason, DumpReason::host_oom);
  ASSERT_EQ(dumps[0].killed.size(), 1U);
  EXPECT_EQ(dumps[0].killed[0].process.pid, child);
  EXPECT_EQ(dumps[0].killed[0].evidence, KillEvidence::exit_signal);
  EXPECT_EQ(dumps[0].files.size(), 2U) << "both images";
}

}  // namespace
}  // namespace tidemark::testing
