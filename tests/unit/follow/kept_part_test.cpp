// A flight recorder's window, followed while it moves on: compared with a recording of everything.
#include "follow/kept_part.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "follow/followed_recording.h"
#include "follow/follower.h"
#include "temporary_folder.h"
#include "trace/window_writer.h"
#include "unit/trace/random_program.h"

namespace tidemark::testing {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kStep = 2'000'000;

class KeptPartTest : public ::testing::Test {
 protected:
  KeptPartTest() : kept_(*KeptFolder::create(folder_.at("run.tide"))), full_(write_to(&bytes_)) {
    writer_ = WindowWriter::create(open_segments(kept_, 4711), {10 * kSecond, 0}, {}).value();
    program_.emplace(std::vector<RecordingWriter*>{full_.get(), writer_.get()}, 7);
  }

  void run(double seconds) {
    const std::uint64_t until = program_->now_ns() + static_cast<std::uint64_t>(seconds * kSecond);
    while (program_->now_ns() < until) {
      program_->step(kStep, 50);
      if (writer_->is_due(program_->now_ns())) {
        ASSERT_TRUE(writer_->next_segment(program_->now_ns()));
      }
    }
    ASSERT_TRUE(writer_->flush());
  }
  void finish() {
    ASSERT_TRUE(full_->finish({program_->now_ns(), true}));
    ASSERT_TRUE(writer_->finish({program_->now_ns(), true}));
  }
  /// Runs until another segment begins, and a little further.
  void run_into_the_next_segment() {
    const std::string before = writer_->path();
    while (writer_->path() == before) run(0.01);
    run(0.05);
  }
  /// The job ends, and the kept window is deleted.
  void end_job() {
    finish();
    writer_.reset();
    kept_.reset();
    EXPECT_FALSE(std::filesystem::exists(folder_.at("run.tide.kept")));
  }
  [[nodiscard]] std::unique_ptr<Follower> follow() const {
    auto follower = Follower::open_live(writer_->path());
    EXPECT_TRUE(follower) << follower.error().message;
    return std::move(*follower);
  }
  /// Adds all available data to `read`.
  static void take(Follower& follower, Recording& read) {
    FollowedBatch batch;
    while (true) {
      const auto more = follower.next(batch);
      ASSERT_TRUE(more) << more.error().message;
      if (!*more) break;
      read.events.insert(read.events.end(), batch.events.begin(), batch.events.end());
    }
    read.definitions = follower.definitions();
  }
  /// Follows a program that has run, and reads the available data; then the program runs on.
  [[nodiscard]] std::unique_ptr<Follower> follow_after(double before_s, Recording& read, double on_s) {
    run(before_s);
    auto follower = follow();
    take(*follower, read);
    run(on_s);
    return follower;
  }
  static void take_to_the_end(Follower& follower, Recording& read) {
    for (take(follower, read); follower.state() == FollowState::growing; take(follower, read)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  [[nodiscard]] static std::vector<std::string> texts(const Recording& recording) {
    std::vector<std::string> texts;
    for (const Event& event : recording.events) texts.push_back(text_of(recording, event));
    return texts;
  }

  TemporaryFolder folder_;
  std::shared_ptr<KeptFolder> kept_;
  Bytes bytes_;
  std::unique_ptr<TraceWriter> full_;
  std::unique_ptr<WindowWriter> writer_;
  std::optional<RandomProgram> program_;
};

TEST_F(KeptPartTest, FromTheBeginningToTheEnd) {
  run(0.5);
  const auto follower = follow();
  EXPECT_EQ(follower->path(), folder_.at("run.tide.kept"));
  Recording read;
  for (int turn = 0; turn < 60; ++turn) {
    run(0.5);
    take(*follower, read);
    EXPECT_EQ(follower->state(), FollowState::growing);
    EXPECT_EQ(read.events.back().time_ns, program_->now_ns()) << "everything up to now";
  }
  EXPECT_TRUE(follower->moved_on());
  finish();
  take_to_the_end(*follower, read);
  EXPECT_EQ(follower->state(), FollowState::ended);
  const Recording everything = read_all(bytes_);
  EXPECT_EQ(texts(read), texts(everything));
  EXPECT_EQ(read.definitions.threads.size(), 1U);
  EXPECT_EQ(read.definitions.nn_modules.size(), 1U);
  ASSERT_TRUE(read.definitions.end.has_value());
  EXPECT_EQ(read.definitions.end->time_ns, program_->now_ns());
  EXPECT_TRUE(read.definitions.end->process_exited);
}

TEST_F(KeptPartTest, FromTheMiddleOnAllKeptEvents) {
  Recording read;
  const auto follower = follow_after(30, read, 3);
  take(*follower, read);
  finish();
  take_to_the_end(*follower, read);
  const Recording everything = read_all(bytes_);
  expect_window(read, everything);
  std::uint64_t begin_ns = 0;
  for (const Event& event : read.events) begin_ns = event.kind == EventKind::resume ? event.time_ns : begin_ns;
  EXPECT_LE(begin_ns, 20 * kSecond) << "when following began, ten seconds were there";
}

// The job ends a moment after that: a reader that polls ten times a second never sees the last segment in the folder.
TEST_F(KeptPartTest, TheLastSegmentBeginsAndEndsBetweenTwoLooks) {
  Recording read;
  const auto follower = follow_after(5, read, 0.1);
  take(*follower, read);
  run_into_the_next_segment();
  end_job();
  take_to_the_end(*follower, read);
  EXPECT_EQ(follower->state(), FollowState::ended);
  EXPECT_EQ(texts(read), texts(read_all(bytes_)));
  ASSERT_TRUE(read.definitions.end.has_value());
  EXPECT_EQ(read.definitions.end->time_ns, program_->now_ns());
  EXPECT_TRUE(read.definitions.end->process_exited);
}

TEST_F(KeptPartTest, TwoSegmentsBetweenReadsAreAGap) {
  Recording read;
  const auto follower = follow_after(5, read, 0.1);
  take(*follower, read);
  const auto recording = FollowedRecording::open(writer_->path(), true).value();
  ASSERT_TRUE(recording->read([] { return true; }));
  const std::uint64_t seen = recording->event_count();
  run_into_the_next_segment();
  run_into_the_next_segment();
  end_job();
  take_to_the_end(*follower, read);
  EXPECT_EQ(follower->state(), FollowState::changed);
  EXPECT_FALSE(read.definitions.end.has_value());
  while (recording->state() == FollowState::growing) {
    ASSERT_TRUE(recording->read([] { return true; })) << "what was read before stays";
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(recording->state(), FollowState::changed);
  EXPECT_GE(recording->event_count(), seen);
}

// A program that is still running when its recording is ended; the process is not recorded as exited.
TEST_F(KeptPartTest, RecordingEndsBeforeItsProgram) {
  Recording read;
  const auto follower = follow_after(5, read, 0.1);
  ASSERT_TRUE(writer_->finish({program_->now_ns(), false}));
  take_to_the_end(*follower, read);
  EXPECT_EQ(follower->state(), FollowState::ended);
  ASSERT_TRUE(read.definitions.end.has_value());
  EXPECT_FALSE(read.definitions.end->process_exited);
}

TEST_F(KeptPartTest, NextFileExistsUntilTheWriterEnds) {
  run(1);
  const auto names = [&] {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(kept_->path()))
      found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  };
  EXPECT_EQ(names(), (std::vector<std::string>{"000001.1.pid4711.tide", "000002.1.pid4711.next"}));
  run_into_the_next_segment();
  EXPECT_EQ(names(),
            (std::vector<std::string>{"000001.1.pid4711.tide", "000002.1.pid4711.tide", "000003.1.pid4711.next"}));
  writer_->leave();
  finish();
  EXPECT_EQ(names(), (std::vector<std::string>{"000001.1.pid4711.tide", "000002.1.pid4711.tide"}));
}

TEST_F(KeptPartTest, LateReaderGetsAGap) {
  Recording read;
  const auto follower = follow_after(1, read, 20);
  take(*follower, read);
  EXPECT_EQ(follower->state(), FollowState::changed);
}

TEST_F(KeptPartTest, ARecorderThatIsKilled) {
  Recording read;
  const auto follower = follow_after(5, read, 1);
  writer_->leave();
  writer_.reset();
  take_to_the_end(*follower, read);
  EXPECT_EQ(follower->state(), FollowState::recorder_gone);
  ASSERT_TRUE(full_->finish({program_->now_ns(), true}));
  EXPECT_EQ(texts(read), texts(read_all(bytes_)));
  EXPECT_FALSE(read.definitions.end.has_value());
  std::filesystem::remove_all(kept_->path());
}

TEST_F(KeptPartTest, StateCoversTheKeptWindow) {
  run(25);
  const auto recording = FollowedRecording::open(writer_->path(), true).value();
  const auto read = [&] { ASSERT_TRUE(recording->read([] { return true; })); };
  const auto live_bytes = [&] {
    std::uint64_t bytes = 0;
    for (const DeviceSummary& device : recording->overview().devices) bytes += device.live_allocated_bytes;
    return bytes;
  };
  std::uint64_t most_events = 0;
  for (int turn = 0; turn < 80; ++turn) {
    run(0.5);
    read();
    most_events = std::max(most_events, recording->event_count());
  }
  // At least ten seconds are kept, at most twelve and a half; and up to that again until all of it is new.
  EXPECT_GE(most_events, 10 * kSecond / kStep);
  EXPECT_LE(most_events, 30 * kSecond / kStep);
  finish();
  read();
  ASSERT_TRUE(full_->flush());
  std::map<std::pair<bool, std::uint64_t>, std::uint64_t> live;
  for (const Event& event : read_all(bytes_).events) {
    const std::pair block(event.device == kProgramGpu, event.address);
    if (event.kind == EventKind::allocate) live[block] = event.size;
    if (event.kind == EventKind::free) live.erase(block);
  }
  std::uint64_t expected = 0;
  for (const auto& [block, size] : live) expected += size;
  EXPECT_EQ(live_bytes(), expected);
  EXPECT_EQ(recording->state(), FollowState::ended);
  // Times begin with the kept part, and that is not a pause of the program.
  for (const Overview& overview :
       {static_cast<Overview>(recording->overview()), static_cast<Overview>(recording->store())}) {
    ASSERT_TRUE(overview.window_began_ns.has_value());
    EXPECT_EQ(*overview.window_began_ns + overview.end_ns, program_->now_ns());
    EXPECT_GE(overview.end_ns, 10 * kSecond);
    EXPECT_TRUE(overview.pauses.empty());
  }
  EXPECT_EQ(recording->now_ns(), recording->overview().end_ns);
}

TEST_F(KeptPartTest, FailsWithoutAnyFile) {
  run(1);
  const std::string path = writer_->path();
  finish();
  writer_.reset();
  EXPECT_FALSE(Follower::open_live(path));
}

TEST(KeptSegment, Names) {
  const auto segment = kept_segment("/data/run.tide.kept/000012.3.pid4711.tide");
  ASSERT_TRUE(segment);
  EXPECT_EQ(*segment, (KeptSegment{"/data/run.tide.kept", 12, "3.pid4711"}));
  EXPECT_EQ(segment->path(), "/data/run.tide.kept/000012.3.pid4711.tide");
  EXPECT_EQ(kept_segment("k/1234567.1.pid1.tide")->number, 1'234'567U);
  for (const char* path :
       {"run.tide", "a/run.tide", "a/run.pid12.tide", "000001.1.pid1.tide", "a/000001.1.pid1", "a/", "a/1.1.pid1.tide",
        "a/-00001.1.pid1.tide", "a/000001pid1.tide", "", "a/.tide", "a/99999999999999999999.1.pid1.tide"}) {
    EXPECT_FALSE(kept_segment(path)) << path;
  }
  EXPECT_TRUE(same_recording("a/000001.1.pid1.tide", "a/000002.1.pid1.tide"));
  EXPECT_FALSE(same_recording("a/000001.1.pid1.tide", "a/000002.2.pid1.tide"));
  EXPECT_FALSE(same_recording("a/000001.1.pid1.tide", "b/000002.1.pid1.tide"));
  EXPECT_TRUE(same_recording("a.tide", "a.tide"));
  EXPECT_FALSE(same_recording("a.tide", "b.tide"));
}

}  // namespace
}  // namespace tidemark::testing
