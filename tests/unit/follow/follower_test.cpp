// A recording that is read while it is written: every prefix of it, and every way in which writing can end.
#include "follow/follower.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <chrono>
#include <span>
#include <thread>

#include "base/locked_file.h"
#include "temporary_folder.h"
#include "unit/trace/trace_test_support.h"

namespace tidemark::testing {
namespace {

using ::testing::HasSubstr;

constexpr Device kDevice = {DeviceType::cuda, 0};

// Three flushes of events with their definitions, and samples; with or without an end.
Bytes recording(bool with_end = true) {
  Bytes bytes;
  const auto writer = write_to(&bytes);
  writer->sample(SampledDevice{"nvidia", 0, {}, 0, "GPU", "", "", 1 << 30});
  std::uint64_t time = 100;
  for (std::uint64_t flush = 0; flush < 3; ++flush) {
    Location location;
    location.function = writer->string(std::to_string(flush));
    const StackId stack = writer->stack({}, writer->location(location));
    for (std::uint64_t index = 0; index < 5; ++index) {
      Event event = allocate(time += 10, 0x1000 * (1 + index), 512 + flush, kDevice);
      event.stack = stack;
      EXPECT_TRUE(writer->event(event).ok());
      if (index % 2 != 0) continue;
      EXPECT_TRUE(writer->event(free_at(time += 10, 0x1000 * (1 + index), kDevice)).ok());
    }
    writer->sample(DeviceSample{time - 25, SampledDeviceId{0}, flush, {}, {}, {}, {}});
    writer->mark({Mark::Kind::point, time, writer->string("mark"), {}});
    EXPECT_TRUE(writer->flush().ok());
  }
  if (!with_end) return bytes;
  EXPECT_TRUE(writer->finish({time, true}).ok());
  return bytes;
}

// A recorder's file: locked while it is written.
class GrowingFile {
 public:
  explicit GrowingFile(const std::string& path) : fd_(create_locked_file(path, true).value()) {}
  void append(std::span<const std::byte> bytes) {
    EXPECT_EQ(::write(fd_.get(), bytes.data(), bytes.size()), static_cast<::ssize_t>(bytes.size()));
  }
  void cut(::off_t size) { EXPECT_EQ(::ftruncate(fd_.get(), size), 0); }
  /// As when the recorder is killed.
  void close() { fd_.reset(); }

 private:
  ScopedFd fd_;
};

// The data followed so far.
struct Followed {
  explicit Followed(const std::string& path) : follower(Follower::open(path).value()) {}

  void add(const Event& event) { events.push_back(event); }
  void add_sample(const SampleRecord& record) { samples.emplace_back(record, events.size()); }
  /// Reads all available data.
  void read() {
    FollowedBatch batch;
    while (true) {
      const auto more = follower->next(batch);
      if (!more) error = more.error().message;
      if (!more || !*more) return;
      batch.deliver_to(*this);
    }
  }
  /// Reads until the follower reports the end.
  void read_to_the_end() {
    for (read(); follower->state() == FollowState::growing && error.empty(); read()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  [[nodiscard]] std::uint64_t torn_bytes() const {
    std::uint64_t bytes = 0;
    for (const Loss& loss : follower->definitions().losses) bytes += loss.kind == QualityId::torn_tail ? loss.count : 0;
    return bytes;
  }

  std::unique_ptr<Follower> follower;
  std::vector<Event> events;
  std::vector<std::pair<SampleRecord, std::size_t>> samples;  ///< and how many events came before it
  std::string error;
};

std::vector<std::string> described(const std::vector<Event>& events) {
  std::vector<std::string> lines;
  for (const Event& event : events) lines.push_back(describe(event));
  return lines;
}

TEST(Follower, ReturnsEventsOfEveryPrefix) {
  const TemporaryFolder folder;
  const Bytes bytes = recording();
  GrowingFile file(folder.at("run.tide"));
  Followed followed(folder.at("run.tide"));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    followed.read();
    ASSERT_EQ(followed.error, "") << "at " << size;
    ASSERT_EQ(followed.follower->state(), FollowState::growing) << "at " << size;
    const Recording prefix = read_all(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)));
    ASSERT_EQ(followed.events.size(), prefix.events.size()) << "at " << size;
    ASSERT_EQ(followed.follower->definitions().marks.size(), prefix.definitions.marks.size()) << "at " << size;
    file.append(std::span(bytes).subspan(size, 1));
  }
  followed.read();
  EXPECT_EQ(followed.follower->state(), FollowState::ended);  // though the recorder still has the file open
  const Recording whole = read_all(bytes);
  EXPECT_EQ(described(followed.events), described(whole.events));
  EXPECT_TRUE(followed.follower->definitions().losses.empty());
  EXPECT_TRUE(followed.follower->definitions().end.has_value());
  EXPECT_EQ(followed.follower->behind(), 0U);
}

TEST(Follower, PutsSamplesBetweenTheEventsOfTheirTime) {
  const TemporaryFolder folder;
  GrowingFile file(folder.at("run.tide"));
  file.append(recording());
  Followed followed(folder.at("run.tide"));
  followed.read();
  ASSERT_EQ(followed.samples.size(), 4U);  // the device, and one a flush
  for (std::size_t sample = 1; sample < followed.samples.size(); ++sample) {
    const auto& [record, before] = followed.samples[sample];
    EXPECT_LT(followed.events[before - 1].time_ns, time_of(record) + 1);
    EXPECT_GE(followed.events[before].time_ns, time_of(record));
  }
}

TEST(Follower, TornTailIsDamageOnlyAfterTheRecorder) {
  const TemporaryFolder folder;
  const Bytes bytes = recording(false);
  GrowingFile file(folder.at("run.tide"));
  file.append(std::span(bytes).first(bytes.size() - 3));
  Followed followed(folder.at("run.tide"));
  followed.read();
  EXPECT_EQ(followed.follower->state(), FollowState::growing);
  EXPECT_EQ(followed.torn_bytes(), 0U);
  file.close();
  followed.read_to_the_end();
  EXPECT_EQ(followed.follower->state(), FollowState::recorder_gone);
  const Recording expected = read_all(Bytes(bytes.begin(), bytes.end() - 3));
  EXPECT_EQ(described(followed.events), described(expected.events));
  EXPECT_EQ(followed.torn_bytes(), expected.lost(QualityId::torn_tail));
  EXPECT_GT(followed.torn_bytes(), 0U);
}

TEST(Follower, ReadsDataOfKilledRecorder) {
  const TemporaryFolder folder;
  const Bytes bytes = recording(false);
  GrowingFile file(folder.at("run.tide"));
  Followed followed(folder.at("run.tide"));
  followed.read();
  file.append(bytes);
  file.close();
  followed.read_to_the_end();
  EXPECT_EQ(followed.follower->state(), FollowState::recorder_gone);
  EXPECT_EQ(described(followed.events), described(read_all(bytes).events));
  EXPECT_EQ(followed.torn_bytes(), 0U);
}

TEST(Follower, KeepsItsFile) {
  const TemporaryFolder folder;
  const std::string path = folder.at("run.tide");
  const Bytes bytes = recording(false);
  GrowingFile file(path);
  file.append(bytes);
  Followed followed(path);
  followed.read();
  EXPECT_FALSE(followed.follower->lost_its_name());
  file.close();
  GrowingFile other(path);  // another run replaces it
  other.append(recording());
  followed.read_to_the_end();
  EXPECT_EQ(followed.follower->state(), FollowState::recorder_gone);
  EXPECT_TRUE(followed.follower->lost_its_name());
  EXPECT_EQ(described(followed.events), described(read_all(bytes).events));
}

TEST(Follower, ReportsChangedFile) {
  const TemporaryFolder folder;
  const Bytes bytes = recording();
  const std::vector<std::byte> nonsense(100, std::byte{0xFF});
  for (const bool cut : {true, false}) {
    SCOPED_TRACE(cut ? "cut" : "nonsense");
    GrowingFile file(folder.at("run.tide"));
    file.append(std::span(bytes).first(bytes.size() / 2));
    Followed followed(folder.at("run.tide"));
    followed.read();
    EXPECT_EQ(followed.follower->state(), FollowState::growing);
    if (cut) file.cut(20);
    if (!cut) {
      file.cut(0);  // and longer than before: the next data does not fit the earlier data
      file.append(std::vector<std::byte>(bytes.size(), std::byte{0xFF}));
    }
    followed.read_to_the_end();
    EXPECT_EQ(followed.error, "");
    EXPECT_EQ(followed.follower->state(), FollowState::changed);
  }
}

TEST(Follower, RefusesOtherFiles) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo(folder.at("pipe").c_str(), 0600), 0);
  EXPECT_THAT(Follower::open(folder.at("pipe")).error().message, HasSubstr("not a regular file"));
  EXPECT_THAT(Follower::open(folder.path()).error().message, HasSubstr("not a regular file"));
  EXPECT_THAT(Follower::open(folder.at("none")).error().message, HasSubstr("cannot be opened"));
  Followed text(folder.write("text", "this is no recording at all"));
  text.read_to_the_end();
  EXPECT_THAT(text.error, HasSubstr("is not a tidemark recording"));
  Followed empty(folder.write("empty", ""));
  empty.read_to_the_end();
  EXPECT_THAT(empty.error, HasSubstr("nothing was recorded"));
}

TEST(Follower, ForgetsMarks) {
  const TemporaryFolder folder;
  GrowingFile file(folder.at("run.tide"));
  file.append(recording());
  Followed followed(folder.at("run.tide"));
  followed.read();
  const std::vector<Mark> marks = followed.follower->definitions().marks;
  ASSERT_EQ(marks.size(), 3U);
  followed.follower->forget_marks_before(marks[2].time_ns);
  ASSERT_EQ(followed.follower->definitions().marks.size(), 1U);
  EXPECT_EQ(followed.follower->definitions().marks[0].time_ns, marks[2].time_ns);
}

}  // namespace
}  // namespace tidemark::testing
