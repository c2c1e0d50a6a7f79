// The files of a recorder that keeps only the last part, and when it writes them.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "collect/recorder/live/live_recordings.h"
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
  /// The kernel's values for the machine.
  void count_kills(int kills) const { machine.write("proc/vmstat", "oom_kill " + std::to_string(kills) + "\n"); }
  /// A child that records an event into each of this many rings, like one that calls exec, and waits.
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
  /// Waits until the recorder has seen it.
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

TEST_F(RecorderDumpsTest, ProcessMayBeKilledAfterExec) {
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

TEST_F(RecorderDumpsTest, AKillWaitsForTheDumpThatIsBeingWritten) {
  std::atomic<bool> go_on = false;
  describe = [&](const Dump& dump) {
    while (dump.reason == DumpReason::signal && !go_on) std::this_thread::sleep_for(1ms);
    return std::vector<std::string>();
  };
  create();
  start_child();
  poll_until([&] { return !recorder->open_files().empty(); });
  recorder->dump_for_signal();
  count_kills(1);
  kill_child();
  // It is due after a second: the recorder continues meanwhile, or this waits forever.
  const auto due = std::chrono::steady_clock::now() + 1200ms;
  while (std::chrono::steady_clock::now() < due) recorder->poll_once({});
  EXPECT_TRUE(recorder->take_dumps().empty());
  go_on = true;
  std::vector<Dump> dumps;
  poll_until([&] {
    for (Dump& dump : recorder->take_dumps()) dumps.push_back(std::move(dump));
    return dumps.size() == 2;
  });
  EXPECT_EQ(dumps[0].reason, DumpReason::signal);
  EXPECT_EQ(dumps[1].reason, DumpReason::host_oom);
  ASSERT_EQ(dumps[1].files.size(), 1U);
  EXPECT_EQ(dumps[1].files[0].pid, child);
  EXPECT_TRUE(end(0).empty());
}

TEST_F(RecorderDumpsTest, AReaderMayAskForADump) {
  create();
  start_child();
  poll_until([&] { return !recorder->open_files().empty(); });
  const auto socket = std::filesystem::path(variable(ring::kSocketVariable)).parent_path() / "live";
  auto reader = LiveRecorder::connect(socket.string());
  ASSERT_TRUE(reader);
  poll_until([&] { return reader->update() && reader->heard(); });
  EXPECT_TRUE(reader->dumps().keeps);
  EXPECT_TRUE(reader->dumps().dumps.empty());
  EXPECT_TRUE(reader->ask_for_dump("ab.0"));
  poll_until([&] { return reader->update() && reader->dumps().dumps.size() == 1; });
  const LiveDump first = reader->dumps().dumps[0];
  EXPECT_EQ(first.request, "ab.0");
  EXPECT_EQ(first.reason, "request");
  EXPECT_EQ(first.paths, std::vector<std::string>{folder.at("run.tide")});
  EXPECT_TRUE(std::filesystem::exists(folder.at("run.tide")));
  // Readers cannot fill the disk.
  EXPECT_TRUE(reader->ask_for_dump("ab.1"));
  poll_until([&] { return reader->update() && reader->dumps().dumps.size() == 2; });
  EXPECT_EQ(reader->dumps().dumps[1].request, "ab.1");
  EXPECT_EQ(reader->dumps().dumps[1].problem, "the dump before was requested just now");
  kill_child();
  EXPECT_EQ(end(0).size(), 1U);
}

TEST_F(RecorderDumpsTest, RequestedDumpDoesNotReplaceOomDump) {
  create();
  const RingProcess process(clock(), ring::ticks(clock()));
  RingThread thread(process, 0, 1);
  thread.put(ring::RecordKind::out_of_memory, {}, ring::kNoStack, {ring::ticks(clock()), 0, 1'000'000});
  process.shared()->control.ended.store(1);
  hand_over(process);
  poll_until([&] { return !recorder->files().empty(); });
  recorder->dump_for_signal();
  const std::vector<Dump> dumps = end(0);
  ASSERT_EQ(dumps.size(), 2U);
  EXPECT_EQ(dumps[0].reason, DumpReason::signal);
  EXPECT_EQ(dumps[1].reason, DumpReason::device_oom);
  for (const Dump& dump : dumps) {
    ASSERT_EQ(dump.files.size(), 1U);
    EXPECT_EQ(dump.files[0].oom_count, 1U);
  }
}

}  // namespace
}  // namespace tidemark::testing
