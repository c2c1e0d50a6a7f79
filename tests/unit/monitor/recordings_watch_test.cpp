// This test acts as a recorder: data about a leaking process, from the file that is being written.
#include "monitor/recordings_watch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>

#include "base/locked_file.h"
#include "collect/recorder/live/kept_folder.h"
#include "collect/recorder/live/live_recordings.h"
#include "collect/recorder/live/socket_folder.h"
#include "collect/ring/layout.h"
#include "temporary_folder.h"
#include "trace/sink.h"
#include "unit/trace/trace_test_support.h"

namespace tidemark::testing {
namespace {

using namespace std::chrono_literals;

constexpr Device kRecordedGpu = {DeviceType::cuda, 0};
constexpr std::uint64_t kStepNs = 100'000'000;
constexpr std::uint64_t kKept = 1 << 20;
constexpr WindowLimits kEightSeconds = {80 * kStepNs, 0};  // segments of ten steps

// In each step, which a mark begins: a block that is freed at its end, and one that is not. It is recorded as a whole,
// or only the most recent part of it.
class LeakingProgram {
 public:
  explicit LeakingProgram(std::optional<WindowLimits> keep = {}, pid_t pid = ::getpid()) : pid_(pid) {
    if (const char* place = std::getenv("TIDEMARK_RUNTIME_DIR")) usual_place_ = place;
    ::setenv("TIDEMARK_RUNTIME_DIR", folder_.path().c_str(), 1);
    auto sockets = SocketFolder::create();
    sockets_.emplace(std::move(sockets.value()));
    clients_.emplace(sockets_->listen_to_readers().value());
    if (keep) {
      kept_ = KeptFolder::create(file_path()).value();
      auto window = WindowWriter::create(open_segments(kept_, pid_), *keep, {}).value();
      window_ = window.get();
      writer_ = std::move(window);
    } else {
      file_ = create_locked_file(file_path(), true).value();
      writer_ = write_to(&bytes_);
    }
    work_ = stack("forward");
    keep_ = stack("remember");
    (void)writer_->flush();
  }

  ~LeakingProgram() {
    usual_place_ ? ::setenv("TIDEMARK_RUNTIME_DIR", usual_place_->c_str(), 1) : ::unsetenv("TIDEMARK_RUNTIME_DIR");
  }
  LeakingProgram(const LeakingProgram&) = delete;
  LeakingProgram& operator=(const LeakingProgram&) = delete;

  void run(std::uint64_t steps) {
    for (const std::uint64_t end = step_ + steps; step_ < end; ++step_) {
      const std::uint64_t time = kStepNs * (1 + step_);
      if (window_ != nullptr && window_->is_due(time)) {
        EXPECT_TRUE(window_->next_segment(time));
      }
      writer_->mark({Mark::Kind::point, time, writer_->string("step"), {}});
      add(allocate(time + 1, 0x1000, 8 * kKept, kRecordedGpu), work_);
      add(allocate(time + 2, 0x100000 + kKept * step_, kKept, kRecordedGpu), keep_);
      add(free_at(time + 3, 0x1000, kRecordedGpu), {});
    }
    write_out();
  }

  /// This many pairs of events, some 20 us apart: short-lived blocks of any size. `large`: one of them is temporarily
  /// larger than any other.
  void run_fast(std::uint64_t pairs, std::uint64_t large = 0) {
    for (std::uint64_t pair = 0; pair < pairs; ++pair) {
      const std::uint64_t address = 0x9000'0000 + 0x1000 * (random_() % 10'000);
      const std::uint64_t size = large > 0 && pair == pairs / 2 ? large : 512 * (1 + random_() % 1000);
      fast_ns_ += 10'000 + random_() % 20'000;
      add_sized(allocate(fast_ns_, address, size, kRecordedGpu), size);
      fast_ns_ += 10'000 + random_() % 20'000;
      add_sized(free_at(fast_ns_, address, kRecordedGpu), 0 - size);
    }
    write_out();
  }
  /// The beginning of run_fast().
  void begin_fast(std::uint64_t later_ns = 0) { fast_ns_ = kStepNs * (1 + step_) + later_ns; }
  /// A permanent block from the time of run_fast().
  void keep_fast(std::uint64_t size) {
    Event event = allocate(fast_ns_ += 10'000, 0xA000'0000 + kept_fast_++ * 0x1000'0000, size, kRecordedGpu);
    event.stack = keep_;
    add_sized(event, size);
  }
  [[nodiscard]] std::uint64_t allocated() const { return allocated_; }
  void write_out() {
    EXPECT_TRUE(writer_->flush().ok());
    if (window_ != nullptr) return;
    EXPECT_EQ(::write(file_.get(), bytes_.data() + written_, bytes_.size() - written_),
              static_cast<::ssize_t>(bytes_.size() - written_));
    written_ = bytes_.size();
  }

  /// Page-locked memory, from the driver; and a block of the driver that is not page-locked.
  void pin(std::uint64_t address, std::uint64_t size) {
    add_driver(allocate(kStepNs * (1 + step_), address, size, {DeviceType::cuda_host, 0}));
    add_driver(allocate(kStepNs * (1 + step_), address, 32 * kKept, {DeviceType::cuda_driver, 0}));
  }
  void unpin(std::uint64_t address) { add_driver(free_at(kStepNs * (1 + step_), address, {DeviceType::cuda_host, 0})); }
  void allocate_on_cpu(std::uint64_t address, std::uint64_t size) {
    add_driver(allocate(kStepNs * (1 + step_), address, size));
  }
  void free_on_cpu(std::uint64_t address) { add_driver(free_at(kStepNs * (1 + step_), address)); }

  /// The kernel ends a DataLoader worker of it.
  void kill_worker() {
    KilledProcess killed;
    killed.time_ns = kStepNs * (1 + step_);
    killed.process.pid = 8;
    killed.process.role = ProcessRole::data_worker;
    killed.scope = KillScope::cgroup;
    writer_->sample(killed);
  }

  /// Updates until the watch has read everything, `seconds` after the program began.
  void let_read(RecordingsWatch& watch, std::uint64_t seconds) {
    MachineState state;
    state.now_ns = seconds * 1'000'000'000;
    state.processes.emplace_back().pid = pid_;  // and no other recordings on this machine
    WatchedDevice& host = state.devices.emplace_back();
    host.key = "cpu";
    host.is_host = true;
    for (int look = 0; look < 3; ++look) {
      watch.update(state, true);
      clients_->welcome();
      std::vector<LiveRecording> told;
      if (writer_) told.push_back({pid_, window_ != nullptr ? window_->path() : file_path(), {}, "python train.py", 5});
      clients_->send(told);
    }
    watch.update(state, true);
  }
  /// As its Python package does: the answer to the first request.
  void answer_objects() {
    const std::string folder = std::filesystem::path(sockets_->socket()).parent_path().string();
    std::ofstream(fmt::format("{}/{}{}{}", folder, ring::kQuestionStem, pid_, ring::kAnswerEnd))
        << R"({"new_storages":0,"new_bytes":0,"storages":[]})";
  }
  /// Its recorder no longer lists it: the program has ended.
  void tell_of_nothing() { clients_->send({}); }

  /// The program exits, and the kept window is not dumped.
  void end() {
    EXPECT_TRUE(writer_->finish({std::max(kStepNs * step_ + 3, fast_ns_), true}));
    write_out();
    writer_.reset();
    kept_.reset();
    EXPECT_FALSE(std::filesystem::exists(kept_path()));
  }
  [[nodiscard]] StackId keeps() const { return keep_; }
  [[nodiscard]] std::string file_path() const { return folder_.at("run.tide"); }
  [[nodiscard]] std::string kept_path() const { return file_path() + ".kept"; }
  /// The bytes allocated most of the time, at the end of the steps so far.
  [[nodiscard]] std::uint64_t held() const { return step_ * kKept; }
  /// In its middle the latest step also has its other block.
  [[nodiscard]] std::uint64_t peak() const { return (step_ + 8) * kKept; }

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

  void add_sized(Event event, std::uint64_t grown_by) {
    event.has_totals = true;
    event.total_allocated = allocated_ += grown_by;
    event.total_reserved = 4096 * kKept;
    if (window_ != nullptr && window_->is_due(event.time_ns)) {
      EXPECT_TRUE(window_->next_segment(event.time_ns));
    }
    EXPECT_TRUE(writer_->event(event).ok());
  }
  void add_driver(const Event& event) { EXPECT_TRUE(writer_->event(event).ok()); }

  pid_t pid_;  // PID of an existing process
  std::optional<std::string> usual_place_;
  TemporaryFolder folder_;
  std::optional<SocketFolder> sockets_;
  std::optional<LiveClients> clients_;
  ScopedFd file_;
  Bytes bytes_;
  std::size_t written_ = 0;
  std::shared_ptr<KeptFolder> kept_;
  std::unique_ptr<RecordingWriter> writer_;
  WindowWriter* window_ = nullptr;  // the writer, if only the most recent part is kept
  StackId work_;
  StackId keep_;
  std::uint64_t step_ = 0;
  std::uint64_t allocated_ = 0;
  std::uint64_t fast_ns_ = 0;
  std::uint64_t kept_fast_ = 0;
  std::mt19937_64 random_{5};
};

class StepsOfRecordings : public ::testing::TestWithParam<std::size_t> {};

TEST_P(StepsOfRecordings, AreFoundWithGrowth) {
  LeakingProgram program;
  RecordingsWatch watch(1s, SlidingWindow::Limits{.length = 1h, .events = 100'000, .steps = GetParam()});
  program.run(20);
  program.let_read(watch, 2);
  watch.assess();
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

// In a window of all events, and in one that is cut to the last steps at each search.
INSTANTIATE_TEST_SUITE_P(Windows, StepsOfRecordings, ::testing::Values(0, 8));

TEST(RecordingsWatch, CutsItsWindowToTheLastSteps) {
  LeakingProgram program;
  RecordingsWatch watch(1s, SlidingWindow::Limits{.length = 1h, .events = 100'000, .steps = 8});
  program.run(40);
  program.let_read(watch, 4);
  watch.assess();
  EXPECT_EQ(watch.window_begin_ns(0), kStepNs * (1 + 32));
}

// In a recording that is found late, 50,000 events are enough for the earlier steps; later events are not among them.
TEST(RecordingsWatch, TakesStepsOfTheLatestPast) {
  LeakingProgram program;
  RecordingsWatch watch(1s, SlidingWindow::Limits{.length = 24h, .events = 200'000, .steps = 32});
  program.run(20'000);
  for (int look = 0; look == 0 || !watch.caught_up(); ++look) program.let_read(watch, 2000);
  watch.assess();
  const auto processes = watch.processes();
  ASSERT_EQ(processes.size(), 1U);
  EXPECT_EQ(processes[0].steps, 50'000 / 3);
  program.run(20'000);  // more than the past may have: all of them count
  for (int look = 0; look == 0 || !watch.caught_up(); ++look) program.let_read(watch, 4000);
  watch.assess();
  EXPECT_EQ(watch.processes()[0].steps, 50'000 / 3 + 20'000);
}

TEST(RecordingsWatch, ReportsProcessesEndedByTheOomKiller) {
  LeakingProgram program;
  RecordingsWatch watch(1s, {});
  program.run(2);
  program.let_read(watch, 1);
  EXPECT_TRUE(watch.processes()[0].killed.empty());
  program.kill_worker();
  program.run(2);
  program.let_read(watch, 2);
  const auto processes = watch.processes();
  ASSERT_EQ(processes[0].killed.size(), 1U);
  EXPECT_EQ(processes[0].killed[0].process.role, ProcessRole::data_worker);
  EXPECT_EQ(processes[0].killed[0].scope, KillScope::cgroup);
}

std::optional<std::uint64_t> pinned_bytes(const RecordingsWatch& watch) {
  const auto processes = watch.processes();
  EXPECT_EQ(processes.size(), 1U);
  return processes.empty() ? std::nullopt : processes.front().cuda_pinned_bytes;
}

// For a whole recording, and for the last part of one, whose beginning is repeatedly left out.
TEST(RecordingsWatch, ReportsPinnedMemory) {
  for (const std::optional<WindowLimits>& keep : {std::optional<WindowLimits>(), std::optional(kEightSeconds)}) {
    LeakingProgram program(keep);
    RecordingsWatch watch(1s, {});
    program.run(1);
    program.let_read(watch, 1);
    EXPECT_FALSE(pinned_bytes(watch)) << "the driver's calls may not be recorded";
    program.pin(0x10, 4 * kKept);
    program.pin(0x20, kKept);
    for (std::uint64_t second = 2; second < 40; ++second) {
      program.run(10);
      program.let_read(watch, second);
      EXPECT_EQ(pinned_bytes(watch), 5 * kKept) << second;
    }
    program.unpin(0x10);
    program.run(1);
    program.let_read(watch, 40);
    EXPECT_EQ(pinned_bytes(watch), kKept);
  }
}

// Its events have no totals. For a whole recording, and for a part that begins with the live blocks.
TEST(RecordingsWatch, SumsCpuAllocations) {
  for (const std::optional<WindowLimits>& keep : {std::optional<WindowLimits>(), std::optional(kEightSeconds)}) {
    LeakingProgram program(keep);
    RecordingsWatch watch(1s, {});
    const auto on_cpu = [&watch] {
      const std::vector<RecordedDevice> devices = watch.processes().at(0).devices;
      const auto found = std::find_if(devices.begin(), devices.end(),
                                      [](const RecordedDevice& on) { return on.device.type == DeviceType::cpu; });
      return found == devices.end() ? std::nullopt : std::optional(*found);
    };
    program.run(1);
    program.let_read(watch, 1);
    EXPECT_FALSE(on_cpu());
    program.allocate_on_cpu(0x1000, 4 * kKept);  // where the GPU has a block too
    program.allocate_on_cpu(0x2000, 3 * kKept);
    program.free_on_cpu(0x2000);
    program.free_on_cpu(0x3000);  // allocated before the recording
    program.run(1);
    program.let_read(watch, 2);
    ASSERT_TRUE(on_cpu());
    EXPECT_EQ(on_cpu()->allocated_bytes, 4 * kKept);
    for (std::uint64_t second = 3; second < 40; ++second) {
      program.allocate_on_cpu(0x2000, 2 * kKept);
      program.free_on_cpu(0x2000);
      program.run(10);
      program.let_read(watch, second);
    }
    EXPECT_EQ(on_cpu()->allocated_bytes, 4 * kKept);
    EXPECT_EQ(on_cpu()->allocated.newest().back().high_bytes, 6 * kKept);
    EXPECT_EQ(on_cpu()->key, "cpu");
    EXPECT_EQ(on_cpu()->reserved_bytes, std::nullopt);
    EXPECT_EQ(on_cpu()->most_reserved(), std::nullopt);
    EXPECT_EQ(on_cpu()->unused_share.mean(), std::nullopt);
    program.allocate_on_cpu(0x1000, kKept);  // its free was not seen
    program.run(10);
    program.let_read(watch, 40);
    EXPECT_EQ(on_cpu()->allocated_bytes, kKept);
  }
}

TEST(RecordingsWatch, StepsContinueBeyondTheWindow) {
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

TEST(RecordingsWatch, MissedStepsMakeTheirNumberUnknown) {
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

// Segments are deleted between any two updates, and now and then all are read again.
TEST(RecordingsWatch, KeptWindowIsCountedOnce) {
  LeakingProgram program(kEightSeconds);
  RecordingsWatch watch(1s, SlidingWindow::Limits{.length = 1h, .events = 100'000});
  program.run(5);
  program.let_read(watch, 1);
  const std::string first = program.kept_path() + fmt::format("/000001.1.pid{}.tide", ::getpid());
  ASSERT_TRUE(std::filesystem::exists(first));
  for (std::uint64_t turn = 0; turn < 20; ++turn) {
    program.run(15);
    program.let_read(watch, 2 + turn);
    watch.assess();
    const RecordedProcess process = watch.processes().at(0);
    EXPECT_EQ(process.problem, "");
    EXPECT_EQ(process.state, FollowState::growing);
    EXPECT_EQ(process.steps, 5 + 15 * (turn + 1));
    ASSERT_EQ(process.devices.size(), 1U);
    EXPECT_EQ(process.devices[0].allocated_bytes, program.held());
    EXPECT_EQ(process.devices[0].most_allocated(), program.peak());
  }
  EXPECT_FALSE(std::filesystem::exists(first));
  const std::vector<RecordedProcess> processes = watch.processes();
  ASSERT_EQ(processes.size(), 1U) << "all segments are of one recording";
  const LiveGrowths& growth = *processes[0].growth_on(kRecordedGpu);
  EXPECT_EQ(growth.steps, 305U);
  ASSERT_EQ(growth.sources.size(), 1U);
  const auto whole = growth.whole();
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->classification, GrowthClass::leak);
  EXPECT_DOUBLE_EQ(whole->bytes_per_step->value, static_cast<double>(kKept));
  // All live blocks are in it, each once: including those from before the window.
  const Store window = watch.window(0);
  ASSERT_EQ(window.devices.size(), 1U);
  EXPECT_EQ(window.devices[0].live_allocated_bytes, program.held());
}

TEST(RecordingsWatch, KeptWindowMayBeGoneAtTheNextUpdate) {
  LeakingProgram program(kEightSeconds);
  RecordingsWatch watch(1s, SlidingWindow::Limits{.length = 1h, .events = 100'000});
  program.run(20);
  program.let_read(watch, 1);
  watch.assess();
  EXPECT_EQ(watch.processes().at(0).steps, 20U);
  program.run(200);
  program.let_read(watch, 21);
  watch.assess();
  const RecordedProcess process = watch.processes().at(0);
  EXPECT_EQ(process.problem, "");
  EXPECT_EQ(process.state, FollowState::growing);
  EXPECT_EQ(process.steps, std::nullopt) << "some were seen by nobody";
  ASSERT_EQ(process.devices.size(), 1U);
  EXPECT_EQ(process.devices[0].allocated_bytes, program.held());
  EXPECT_EQ(process.devices[0].most_allocated(), program.peak());
  const auto whole = process.growth_on(kRecordedGpu)->whole();
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->classification, GrowthClass::leak);
  EXPECT_DOUBLE_EQ(whole->bytes_per_step->value, static_cast<double>(kKept)) << "by the steps that are kept alone";
  EXPECT_EQ(watch.window(0).devices.at(0).live_allocated_bytes, program.held());
  EXPECT_GE(watch.window_begin_ns(0), 130 * kStepNs) << "nine seconds before the end";
  EXPECT_EQ(watch.processes().size(), 1U);
}

// The latest segment is replaced by an invalid file.
TEST(RecordingsWatch, UnreadableRecordingFails) {
  LeakingProgram program(kEightSeconds);
  RecordingsWatch watch(1s, SlidingWindow::Limits{.length = 1h, .events = 100'000});
  program.run(15);
  program.let_read(watch, 1);
  watch.assess();
  EXPECT_EQ(watch.processes().at(0).problem, "");
  ASSERT_EQ(watch.steps().size(), 1U);
  EXPECT_EQ(watch.steps()[0].steps, 15U);
  program.run(25);
  std::string latest;
  for (const auto& file : std::filesystem::directory_iterator(program.kept_path())) {
    if (file.path().extension() == ".tide") latest = std::max(latest, file.path().string());
  }
  std::filesystem::remove(latest);
  std::ofstream(latest) << std::string(100, 'x');
  program.let_read(watch, 3);
  const RecordedProcess process = watch.processes().at(0);
  EXPECT_EQ(process.state, FollowState::growing);
  EXPECT_NE(process.problem.find(latest), std::string::npos) << process.problem;
  EXPECT_FALSE(process.goes_on());
  EXPECT_TRUE(watch.steps().empty()) << "how many there are now is not known";
}

// In between, the last segment has begun, and all of them are deleted.
TEST(RecordingsWatch, KeptWindowEndsWithItsProgram) {
  LeakingProgram program(kEightSeconds);
  RecordingsWatch watch(1s, SlidingWindow::Limits{.length = 1h, .events = 100'000});
  program.run(38);
  program.let_read(watch, 1);
  program.run(5);
  program.end();
  program.let_read(watch, 2);
  watch.assess();
  const RecordedProcess process = watch.processes().at(0);
  EXPECT_EQ(process.problem, "");
  EXPECT_EQ(process.state, FollowState::ended);
  EXPECT_EQ(process.devices.at(0).allocated_bytes, program.held());
  EXPECT_EQ(process.devices.at(0).most_allocated(), program.peak());
  EXPECT_TRUE(watch.steps().empty()) << "of those that go on";
  watch.forget_ended();
  EXPECT_TRUE(watch.processes().empty());
}

// An update may read only a part of the data that the program writes meanwhile, on any machine.
constexpr RecordingsWatch::Limits kSlowReader = {.time = 1h, .bytes = 64 << 10, .late_seconds = 2, .past_bytes = 0};

// A program that makes events faster than they are read, for a minute.
void follow_fast_program(LeakingProgram& program, RecordingsWatch& watch) {
  watch.set_limits(kSlowReader);
  program.run(5);
  program.let_read(watch, 1);
  program.begin_fast();
  std::uint64_t peak = program.peak();
  for (std::uint64_t turn = 0; turn < 10; ++turn) {
    const std::uint64_t large = (100 + turn % 3) * kKept;
    program.keep_fast(kKept);
    peak = std::max(peak, program.allocated() + large);
    program.run_fast(60'000, large);
    program.let_read(watch, 2 + 6 * turn);
    const RecordedProcess process = watch.processes().at(0);
    ASSERT_EQ(process.devices.size(), 1U);
    EXPECT_EQ(process.devices[0].allocated_bytes, program.allocated()) << "turn " << turn;
    EXPECT_EQ(process.devices[0].most_allocated(), peak);
    EXPECT_EQ(process.devices[0].allocated.last_bytes(), program.allocated());
    EXPECT_EQ(process.problem, "");
    EXPECT_TRUE(process.goes_on());
    if (turn < 2) continue;
    EXPECT_TRUE(process.lag.is_known());
    EXPECT_EQ(process.steps, std::nullopt);
    EXPECT_TRUE(watch.steps().empty());
    EXPECT_LT(process.lag.behind_seconds.value(), 4) << "it does not fall behind further and further";
  }
}

TEST(RecordingsWatch, DoesNotFallBehindAFastProgram) {
  LeakingProgram program;
  RecordingsWatch watch(1s, SlidingWindow::Limits{.length = 1h, .events = 30'000});
  follow_fast_program(program, watch);
  watch.assess();
  const RecordedProcess process = watch.processes().at(0);
  EXPECT_EQ(process.lag.behind_bytes, 0U);
  EXPECT_GT(process.lag.skipped_events, 300'000U);
  EXPECT_LT(process.lag.skipped_events, 1'200'100U);
  const Store window = watch.window(0);
  EXPECT_GE(watch.window_begin_ns(0), process.lag.skipped_until_ns.value());
  ASSERT_EQ(window.devices.size(), 1U);
  EXPECT_EQ(window.devices[0].live_allocated_bytes, program.allocated()) << "with all blocks that are alive";
  EXPECT_EQ(window.devices[0].live_recorded_bytes, program.allocated());
  ASSERT_NE(process.growth_on(kRecordedGpu), nullptr);
  EXPECT_EQ(process.growth_on(kRecordedGpu)->steps, 0U) << "none of before the gap";
  program.end();
  program.let_read(watch, 70);
  EXPECT_EQ(watch.processes().at(0).state, FollowState::ended);
}

// The kept segments are deleted before they are read.
TEST(RecordingsWatch, DoesNotFallBehindAFastProgramWithAKeptWindow) {
  LeakingProgram program(WindowLimits{40'000'000'000, 0});
  RecordingsWatch watch(1s, SlidingWindow::Limits{.length = 1h, .events = 30'000});
  follow_fast_program(program, watch);
  watch.assess();
  EXPECT_EQ(watch.processes().at(0).lag.behind_bytes, 0U);
  EXPECT_EQ(watch.window(0).devices.at(0).live_allocated_bytes, program.allocated());
}

// Nothing happens for an hour, and then as much as one update can read.
TEST(RecordingsWatch, ABurstAfterAWhileIsNotSkipped) {
  LeakingProgram program;
  RecordingsWatch watch(1s, SlidingWindow::Limits{.length = 1h, .events = 30'000});
  watch.set_limits({.time = 1h, .bytes = 8 << 20, .late_seconds = 2, .past_bytes = 0});
  program.run(5);
  program.let_read(watch, 1);
  program.begin_fast(3'600'000'000'000);
  program.run_fast(100'000);
  program.let_read(watch, 3600);
  const RecordingLag lag = watch.processes().at(0).lag;
  EXPECT_FALSE(lag.is_known());
  EXPECT_EQ(lag.skipped_events, 0U);
}

// It had answered the first request, and is gone at the next one: the watch does not wait for it.
TEST(RecordingsWatch, AProgramThatHasEndedIsNotWaitedFor) {
  LeakingProgram program;
  RecordingsWatch watch(1s, SlidingWindow::Limits{.length = 1h, .events = 30'000});
  watch.ask_for_objects();
  program.run(5);
  program.let_read(watch, 1);
  program.answer_objects();
  program.run(5);
  program.tell_of_nothing();
  const auto begin = std::chrono::steady_clock::now();
  watch.assess();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 15s);
  const auto objects = watch.objects(0);
  ASSERT_FALSE(objects.ok());
  EXPECT_EQ(objects.error().message, "the program ended before the next query");
}

// Its recorder still lists it, because it has not read everything yet.
TEST(RecordingsWatch, AProcessThatIsGoneIsNotWaitedFor) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  LeakingProgram program({}, child);
  RecordingsWatch watch(1s, SlidingWindow::Limits{.length = 1h, .events = 30'000});
  watch.ask_for_objects();
  program.run(5);
  program.let_read(watch, 1);
  program.answer_objects();
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const auto begin = std::chrono::steady_clock::now();
  watch.assess();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 15s);
  const auto objects = watch.objects(0);
  ASSERT_FALSE(objects.ok());
  EXPECT_EQ(objects.error().message, "the program ended before the next query");
}

TEST(RecordingsWatch, NoLagIfReadInTime) {
  LeakingProgram program;
  RecordingsWatch watch(1s, SlidingWindow::Limits{.length = 1h, .events = 30'000});
  program.begin_fast();
  for (std::uint64_t turn = 0; turn < 3; ++turn) {
    program.run_fast(20'000);
    for (int look = 0; look == 0 || !watch.caught_up(); ++look) program.let_read(watch, 2 + turn);
    const RecordingLag lag = watch.processes().at(0).lag;
    EXPECT_FALSE(lag.is_known());
    EXPECT_EQ(lag.behind_bytes, 0U);
    EXPECT_EQ(lag.behind_seconds, 0.0);
    EXPECT_EQ(lag.skipped_events, 0U);
  }
}

}  // namespace
}  // namespace tidemark::testing
