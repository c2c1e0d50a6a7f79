// A recorder that is this test: what is known of a process that leaks, from the file that is being written.
#include "live/recordings_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/locked_file.h"
#include "collect/recorder/live_clients.h"
#include "collect/recorder/socket_folder.h"
#include "temporary_folder.h"
#include "trace/sink.h"
#include "unit/trace/trace_test_support.h"

namespace tidemark::testing {
namespace {

using namespace std::chrono_literals;

constexpr Device kRecordedGpu = {DeviceType::cuda, 0};
constexpr pid_t kPid = 7;
constexpr std::uint64_t kStepNs = 100'000'000;
constexpr std::uint64_t kKept = 1 << 20;

// In each step, which a mark begins: a block that is freed at its end, and one that is not.
class LeakingProgram {
 public:
  LeakingProgram() {
    if (const char* place = std::getenv("TMPDIR")) usual_place_ = place;
    ::setenv("TMPDIR", folder_.path().c_str(), 1);
    ::unsetenv("XDG_RUNTIME_DIR");
    auto sockets = SocketFolder::create();
    sockets_.emplace(std::move(sockets.value()));
    clients_.emplace(sockets_->listen_to_readers().value());
    file_ = create_locked_file(folder_.at("run.tide"), true).value();
    writer_ = write_to(&bytes_);
    work_ = stack("forward");
    keep_ = stack("remember");
    (void)writer_->flush();
  }

  ~LeakingProgram() { usual_place_ ? ::setenv("TMPDIR", usual_place_->c_str(), 1) : ::unsetenv("TMPDIR"); }
  LeakingProgram(const LeakingProgram&) = delete;
  LeakingProgram& operator=(const LeakingProgram&) = delete;

  void run(std::uint64_t steps) {
    for (const std::uint64_t end = step_ + steps; step_ < end; ++step_) {
      const std::uint64_t time = kStepNs * (1 + step_);
      writer_->mark({Mark::Kind::point, time, writer_->string("step"), {}});
      add(allocate(time + 1, 0x1000, 8 * kKept, kRecordedGpu), work_);
      add(allocate(time + 2, 0x100000 + kKept * step_, kKept, kRecordedGpu), keep_);
      add(free_at(time + 3, 0x1000, kRecordedGpu), {});
    }
    EXPECT_TRUE(writer_->flush().ok());
    EXPECT_EQ(::write(file_.get(), bytes_.data() + written_, bytes_.size() - written_),
              static_cast<::ssize_t>(bytes_.size() - written_));
    written_ = bytes_.size();
  }

  /// Until the watch has read all there is, `seconds` after the program began.
  void let_read(RecordingsWatch& watch, std::uint64_t seconds) {
    MachineState state;
    state.now_ns = seconds * 1'000'000'000;
    state.processes.emplace_back().pid = kPid;  // and not what else is recorded on this machine
    for (int look = 0; look < 3; ++look) {
      watch.update(state, true);
      clients_->welcome();
      clients_->tell(std::vector<LiveRecording>{{kPid, folder_.at("run.tide"), {}, "python train.py", 5}});
    }
    watch.update(state, true);
  }
  [[nodiscard]] StackId keeps() const { return keep_; }

 private:
  StackId stack(const std::string& function) {
    Location location;
    location.function = writer_->string(function);
    return writer_->stack({}, writer_->location(location));
  }
  void add(Event event, StackId stack) {
    event.stack = stack;
    event.has_totals = true;
    allocated_ += event.kind == EventKind::allocate ? event.size : 0;
    if (event.kind == EventKind::free) allocated_ -= 8 * kKept;
    event.total_allocated = allocated_;
    event.total_reserved = 4096 * kKept;
    EXPECT_TRUE(writer_->event(event).ok());
  }

  std::optional<std::string> usual_place_;
  TemporaryFolder folder_;
  std::optional<SocketFolder> sockets_;
  std::optional<LiveClients> clients_;
  ScopedFd file_;
  Bytes bytes_;
  std::size_t written_ = 0;
  std::unique_ptr<TraceWriter> writer_;
  StackId work_;
  StackId keep_;
  std::uint64_t step_ = 0;
  std::uint64_t allocated_ = 0;
};

TEST(RecordingsWatch, KnowsTheStepsAndWhatGrowsInThem) {
  LeakingProgram program;
  RecordingsWatch watch(1s, SlidingWindow::Limits{.length = 1h, .events = 100'000});
  program.run(20);
  program.let_read(watch, 2);
  program.run(20);
  program.let_read(watch, 4);
  watch.assess();
  const auto processes = watch.processes();
  ASSERT_EQ(processes.size(), 1U);
  EXPECT_EQ(processes[0].steps, 40U);
  ASSERT_EQ(processes[0].devices.size(), 1U);
  ASSERT_NE(processes[0].growth_on(kRecordedGpu), nullptr);
  const LiveGrowths& growth = *processes[0].growth_on(kRecordedGpu);
  EXPECT_EQ(growth.steps, 40U);
  ASSERT_EQ(growth.sources.size(), 1U);
  EXPECT_EQ(growth.sources[0].source, program.keeps().value);
  const auto whole = growth.whole();
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->classification, GrowthClass::leak);
  EXPECT_DOUBLE_EQ(whole->bytes_per_step->value, static_cast<double>(kKept));
  EXPECT_NEAR(whole->bytes_per_minute.value, 600.0 * kKept, 1);
  const auto told = watch.steps();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].steps, 40U);
  EXPECT_EQ(told[0].reserved_bytes, 4096 * kKept);
}

TEST(RecordingsWatch, StepsGoOnWhereTheWindowForgetsThem) {
  LeakingProgram program;
  RecordingsWatch watch(1s, SlidingWindow::Limits{.length = 1h, .events = 60});  // 20 steps
  for (std::uint64_t turn = 0; turn < 10; ++turn) {
    program.run(15);
    program.let_read(watch, 1 + turn);
    watch.assess();
  }
  EXPECT_EQ(watch.processes()[0].steps, 150U);
  const auto whole = watch.processes()[0].growth_on(kRecordedGpu)->whole();
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->classification, GrowthClass::leak);
  EXPECT_DOUBLE_EQ(whole->bytes_per_step->value, static_cast<double>(kKept));
  EXPECT_LE(watch.definitions(0).marks.size(), 21U) << "marks older than the window are kept";
}

TEST(RecordingsWatch, StepsThatWereMissedMakeTheirNumberUnknown) {
  LeakingProgram program;
  RecordingsWatch watch(1s, SlidingWindow::Limits{.length = 1h, .events = 60});
  for (std::uint64_t turn = 0; turn < 4; ++turn) {
    program.run(50);
    program.let_read(watch, 1 + turn);
    watch.assess();
  }
  EXPECT_EQ(watch.processes()[0].steps, std::nullopt);
  EXPECT_TRUE(watch.steps().empty());
  const auto whole = watch.processes()[0].growth_on(kRecordedGpu)->whole();
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->classification, GrowthClass::leak);
  EXPECT_DOUBLE_EQ(whole->bytes_per_step->value, static_cast<double>(kKept)) << "by the steps of the window alone";
}

TEST(RecordingsWatch, WithoutAWindowNoMarkIsKept) {
  LeakingProgram program;
  RecordingsWatch watch(1s, {});
  program.run(30);
  program.let_read(watch, 1);
  ASSERT_EQ(watch.processes().size(), 1U);
  EXPECT_TRUE(watch.processes()[0].caught_up);
  EXPECT_TRUE(watch.definitions(0).marks.empty());
}

}  // namespace
}  // namespace tidemark::testing
