// The recorder of a job, with hand-made messages: processes that connect, and other data on its socket.
#include "collect/recorder/recorder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>
#include <thread>

#include "recorder_fixture.h"

namespace tidemark::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

TEST_F(RecorderTest, RecordsAProcessUntilItEnds) {
  create();
  const int status = run_child(1000);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  ASSERT_EQ(recorder->files().size(), 1U);
  const RecordedFile& file = recorder->files()[0];
  EXPECT_EQ(file.path, folder.at("run.tide"));
  EXPECT_EQ(file.pid, child);
  EXPECT_EQ(file.event_count, 1000U);
  EXPECT_EQ(file.dropped_count, 0U);
  EXPECT_EQ(file.bytes, std::filesystem::file_size(file.path));
  EXPECT_FALSE(file.failed);
  EXPECT_THAT(said, IsEmpty());

  const Recording recording = read(file.path);
  EXPECT_EQ(recording.error, "");
  ASSERT_EQ(recording.events.size(), 1000U);
  std::uint64_t last = 0;
  for (std::size_t index = 0; index < 1000; ++index) {
    EXPECT_EQ(recording.events[index].address, index + 1);
    EXPECT_EQ(recording.events[index].size, 100 * (index + 1));
    EXPECT_GE(recording.events[index].time_ns, last);
    last = recording.events[index].time_ns;
  }
  EXPECT_LT(last, 10'000'000'000U);
  const ProcessInfo& info = recording.definitions.process;
  EXPECT_EQ(info.pid, child);
  EXPECT_EQ(info.parent_pid, ::getpid());
  EXPECT_EQ(info.stack_mode, "none");
  EXPECT_NE(info.command_line, "");
  ASSERT_TRUE(recording.definitions.end.has_value());
  EXPECT_TRUE(recording.definitions.end->process_exited);
}

TEST_F(RecorderTest, KeepsWhatAKilledProcessCommitted) {
  create();
  const int status = run_child(50'000, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(recorder->files().size(), 1U);
  EXPECT_EQ(recorder->files()[0].event_count, 50'000U);
  EXPECT_EQ(read(folder.at("run.tide")).events.size(), 50'000U);
}

TEST_F(RecorderTest, SurvivesAnyDataOnItsSocket) {
  create();
  recorder->poll_once({});
  const std::size_t descriptors = open_descriptors();
  std::vector<int> silent;
  for (int count = 0; count < 100; ++count) silent.push_back(connect());
  ::close(connect());
  const ring::Hello garbage{~ring::kMagic, ring::kVersion, 0};
  const RingProcess process;
  send(&garbage, sizeof(garbage), {process.fd()});
  send(&kHello, sizeof(kHello), {});
  send(&kHello, 4, {process.fd()});
  send(std::string(3000, 'x').data(), 3000, {});
  for (const std::vector<int>& several : {std::vector<int>{0, 1}, std::vector<int>{0, 1, 2, process.fd()}}) {
    send(&kHello, sizeof(kHello), several);
  }
  for (int count = 0; count < 3; ++count) recorder->poll_once({});
  EXPECT_THAT(said, IsEmpty()) << "that was not one of our processes";
  send(&kHello, sizeof(kHello), {0});
  recorder->poll_once({});
  EXPECT_THAT(said, ElementsAre(HasSubstr("not a ring")));
  said.clear();

  run_child(10);
  ASSERT_EQ(recorder->files().size(), 1U);
  EXPECT_EQ(recorder->files()[0].event_count, 10U);
  for (const int fd : silent) ::close(fd);
  recorder->poll_once({});
  EXPECT_EQ(open_descriptors(), descriptors + 2) << "the ring of this test, the lock of run.tide, and nothing else";
}

TEST_F(RecorderTest, ASecondRingOfAProcessEndsItsFirst) {
  create();
  const RingProcess before(clock(), ring::ticks(clock()));
  RingThread thread(before, 0, 1);
  hand_over(before);
  recorder->poll_once({});
  thread.put(ring::RecordKind::allocate, {}, ring::kNoStack, {ring::ticks(clock()), 1, 8});
  const RingProcess after(clock(), ring::ticks(clock()));
  RingThread next(after, 0, 1);
  next.put(ring::RecordKind::allocate, {}, ring::kNoStack, {ring::ticks(clock()), 2, 8});
  hand_over(after);
  recorder->poll_once({});
  ASSERT_EQ(recorder->files().size(), 1U);
  EXPECT_EQ(recorder->files()[0].path, folder.at("run.tide"));
  EXPECT_EQ(recorder->files()[0].event_count, 1U);

  // This process does not end, but its recording does.
  recorder->finish(std::chrono::milliseconds(0));
  ASSERT_EQ(recorder->files().size(), 2U);
  EXPECT_EQ(recorder->files()[1].path, folder.at("run.pid" + std::to_string(::getpid()) + ".tide"));
  EXPECT_EQ(recorder->files()[1].event_count, 1U);
  EXPECT_EQ(after.shared()->control.stop.load(), 1U);
  EXPECT_THAT(said, ElementsAre(HasSubstr("is still running")));
  EXPECT_FALSE(read(recorder->files()[1].path).definitions.end->process_exited);
}

TEST_F(RecorderTest, ProcessMayEndItsRecordingAndContinue) {
  create();
  const RingProcess process(clock(), ring::ticks(clock()));
  RingThread thread(process, 0, 1);
  hand_over(process);
  recorder->poll_once({});
  EXPECT_THAT(recorder->open_files(), ElementsAre(folder.at("run.tide")));
  thread.put(ring::RecordKind::allocate, {}, ring::kNoStack, {ring::ticks(clock()), 1, 8});
  process.shared()->control.ended.store(1);
  recorder->poll_once({});
  EXPECT_THAT(recorder->open_files(), IsEmpty());
  ASSERT_EQ(recorder->files().size(), 1U);
  EXPECT_EQ(recorder->files()[0].event_count, 1U);
  EXPECT_TRUE(read(folder.at("run.tide")).definitions.end->process_exited);
  EXPECT_THAT(said, IsEmpty());
}

TEST_F(RecorderTest, ReportsReachedSizeLimit) {
  create(16 * 1024);
  const RingProcess process(clock(), ring::ticks(clock()));
  hand_over(process);
  RingThread thread(process, 0, 1);
  put_incompressible(thread);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  recorder->poll_once({});
  recorder->poll_once({});
  EXPECT_THAT(said, ElementsAre(HasSubstr("--max-size")));
  EXPECT_EQ(process.shared()->control.stop.load(), 1U);
  recorder->finish(std::chrono::milliseconds(0));
  ASSERT_EQ(recorder->files().size(), 1U);
  EXPECT_LE(std::filesystem::file_size(folder.at("run.tide")), 16U * 1024);
  EXPECT_EQ(read(folder.at("run.tide")).lost(QualityId::size_limit), 1U);
}

// A fast program may be gone before the recorder has read its last records in the rings.
TEST_F(RecorderTest, ReportsLimitReachedByLastEvents) {
  create(16 * 1024);
  const RingProcess process(clock(), ring::ticks(clock()));
  hand_over(process);
  RingThread thread(process, 0, 1);
  RingThread first_event(process, 1, 2);
  first_event.lane().busy.store(1);  // in the middle of it: all others wait for its time
  put_incompressible(thread);
  recorder->poll_once({});
  EXPECT_THAT(said, IsEmpty());
  recorder->finish(std::chrono::milliseconds(0));
  EXPECT_THAT(said, ElementsAre(HasSubstr("is still running"), HasSubstr("--max-size")));
  EXPECT_LE(std::filesystem::file_size(folder.at("run.tide")), 16U * 1024);
  EXPECT_EQ(read(folder.at("run.tide")).lost(QualityId::size_limit), 1U);
}

TEST_F(RecorderTest, ReportsProcessOfAnotherVersion) {
  create();
  const RingProcess process(clock(), ring::ticks(clock()));
  process.shared()->control.version = 99;
  hand_over(process);
  recorder->poll_once({});
  EXPECT_THAT(said, ElementsAre(HasSubstr("another version of tidemark")));
}

TEST_F(RecorderTest, SamplesOfTheMachineAreInTheRecording) {
  samples = true;
  create();
  const RingProcess process(clock(), ring::ticks(clock()));
  hand_over(process);
  std::size_t host_samples = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (; host_samples < 2 && std::chrono::steady_clock::now() < deadline; recorder->poll_once({})) {
    auto reader = TraceReader::open(folder.at("run.tide"));  // written once a second
    if (!reader.ok()) continue;
    host_samples = 0;
    (*reader)->observe_samples(
        [&](const SampleRecord& record) { host_samples += std::holds_alternative<HostSample>(record) ? 1U : 0U; });
    (void)read_all(std::move(reader));
  }
  EXPECT_GE(host_samples, 2U);
  recorder->finish(std::chrono::milliseconds(0));
}

TEST_F(RecorderTest, ItsSocketIsPrivateAndRemovedAtTheEnd) {
  create();
  const std::string socket = variable(ring::kSocketVariable);
  const auto mode = [](const std::string& path) {
    struct stat facts {};
    return ::stat(path.c_str(), &facts) == 0 ? facts.st_mode & 0777U : 0U;
  };
  EXPECT_EQ(socket.rfind(sockets.path(), 0), 0U);
  EXPECT_EQ(mode(std::filesystem::path(socket).parent_path()), 0700U);
  EXPECT_EQ(mode(socket), 0600U);
  recorder = nullptr;
  EXPECT_TRUE(std::filesystem::is_empty(sockets.path()));
}

TEST_F(RecorderTest, ReportsWhyNothingWasRecorded) {
  create();
  const std::string marks = variable(ring::kSocketVariable) + ".seen";
  ASSERT_TRUE(std::filesystem::exists(marks));
  EXPECT_THAT(recorder->no_recording_reason(),
              AllOf(HasSubstr("no process of the program reported"), HasSubstr("statically linked")));
  std::ofstream(marks) << "N";
  EXPECT_THAT(recorder->no_recording_reason(), HasSubstr("no process of the program loaded PyTorch"));
  std::ofstream(marks) << "NNT";
  EXPECT_THAT(recorder->no_recording_reason(), HasSubstr("PyTorch was loaded"));
}

TEST(RecorderCreate, ErrorNamesUnusableFolders) {
  const SocketPlaces places("/nonexistent");
  // /tmp is the last resort.
  auto created = Recorder::create({}, [](const std::string&) {});
  ASSERT_TRUE(created.ok());
  EXPECT_THAT((*created)->environment()[0], HasSubstr("TIDEMARK_SOCKET=/tmp/tidemark-"));
}

}  // namespace
}  // namespace tidemark::testing
