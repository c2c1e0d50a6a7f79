// Readers of recordings in progress: the messages they get, and their possible effects on the recorder.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "collect/recorder/live/live_recordings.h"
#include "recorder_fixture.h"

namespace tidemark::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;

TEST(LiveMessage, ComesBackAsItWas) {
  const std::vector<LiveRecording> recordings = {
      {7, "/data/a \"b\".tide", 3, "python train.py", 1'795'168'301'328'464'000, 81'328},
      {8, "/data/c.tide", {}, "", 0}};
  EXPECT_EQ(parse_live_message(live_message(recordings)), recordings);
  EXPECT_EQ(live_message({}), "{\"recordings\":[],\"left_out\":0}\n");
}

TEST(LiveMessage, HasTheLatestDumps) {
  LiveDumps dumps;
  dumps.keeps = true;
  for (std::uint64_t n = 1; n <= 10; ++n) {
    dumps.dumps.push_back({n, "request", "ab.0", {"/data/run \"x\".tide", "/data/b"}, n == 10 ? "disk full" : ""});
  }
  const std::vector<LiveRecording> recordings = {{7, "/data/a.tide", {}, "python", 0}};
  const std::string message = live_message(recordings, dumps);
  EXPECT_EQ(parse_live_message(message), recordings);
  const LiveDumps read = parse_live_dumps(message);
  EXPECT_TRUE(read.keeps);
  const std::vector<LiveDump> latest(dumps.dumps.begin() + 2, dumps.dumps.end());
  EXPECT_EQ(read.dumps, latest);
  EXPECT_FALSE(parse_live_dumps(live_message(recordings)).keeps);
  EXPECT_THAT(parse_live_dumps(R"({"dumps": [3, {"number": -1}, {"number": "x"}]})").dumps, IsEmpty());
  // Long paths do not crowd out the recordings.
  dumps.dumps.assign(8, {1, "request", "", std::vector<std::string>(100, std::string(4000, 'x')), ""});
  EXPECT_EQ(parse_live_message(live_message(recordings, dumps)), recordings);
}

TEST(LiveMessage, RequestsHaveAnId) {
  EXPECT_EQ(parse_dump_request(dump_request("00ab.0")), "00ab.0");
  EXPECT_EQ(parse_dump_request(R"({"dump": ""})"), std::nullopt);
  EXPECT_EQ(parse_dump_request("[]"), std::nullopt);
  EXPECT_EQ(parse_dump_request(dump_request(std::string(kMaxDumpRequestBytes, 'x'))), std::nullopt);
}

TEST(LiveMessage, IsBounded) {
  const std::vector<LiveRecording> recordings(1000, {7, std::string(4000, 'x'), {}, "python", 0});
  const std::string message = live_message(recordings);
  EXPECT_THAT(message.size(), Lt(kMaxLiveBytes));
  const auto read = parse_live_message(message);
  ASSERT_TRUE(read.has_value());
  EXPECT_THAT(message, HasSubstr("\"left_out\":" + std::to_string(1000 - read->size())));
}

TEST(LiveMessage, RefusesInvalidMessages) {
  EXPECT_FALSE(parse_live_message("").has_value());
  EXPECT_FALSE(parse_live_message("[1]").has_value());
  EXPECT_FALSE(parse_live_message("{}").has_value());
  EXPECT_FALSE(parse_live_message("{\"recordings\": 3}").has_value());
  EXPECT_FALSE(parse_live_message(std::string(kMaxLiveBytes + 1, ' ')).has_value());
  const auto read = parse_live_message(
      R"({"recordings": [3, {"pid": -1, "path": "/a"}, {"pid": 99999999999, "path": "/a"}, {"pid": 1},
          {"pid": 5, "path": "/b", "rank": "x", "later": {}}], "later": 1})");
  ASSERT_TRUE(read.has_value());
  EXPECT_THAT(*read, ElementsAre(LiveRecording{5, "/b", {}, "", 0}));
}

class LiveTest : public RecorderTest {
 protected:
  void SetUp() override {
    create();
    live_socket = std::filesystem::path(variable(ring::kSocketVariable)).parent_path() / "live";
  }
  [[nodiscard]] LiveRecorder reader() const {
    auto connected = LiveRecorder::connect(live_socket);
    if (!connected) std::abort();
    return std::move(*connected);
  }
  /// Waits until the reader has received this many recordings; returns them.
  std::vector<LiveRecording> hear(LiveRecorder& reader, std::size_t count) {
    for (int attempt = 0; attempt < 1000; ++attempt) {
      recorder->poll_once({});
      if (reader.update() && reader.heard() && reader.recordings().size() == count) break;
    }
    return reader.recordings();
  }
  /// Whether the recorder keeps the connection, after a poll.
  bool is_kept(LiveRecorder& reader) {
    for (int attempt = 0; attempt < 5; ++attempt) recorder->poll_once({});
    return reader.update();
  }

  std::string live_socket;
};

TEST_F(LiveTest, SendsTheListAndItsChanges) {
  struct stat facts {};
  ASSERT_EQ(::stat(live_socket.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  LiveRecorder early = reader();
  EXPECT_THAT(hear(early, 0), IsEmpty());
  EXPECT_TRUE(early.heard());
  {
    const RingProcess process(clock(), ring::ticks(clock()));
    hand_over(process);
    const std::vector<LiveRecording> heard = hear(early, 1);
    ASSERT_EQ(heard.size(), 1U);
    EXPECT_EQ(heard[0].pid, ::getpid());
    EXPECT_EQ(heard[0].path, folder.at("run.tide"));
    EXPECT_FALSE(heard[0].rank.has_value());
    EXPECT_EQ(heard[0].command, "recorder_test");  // without the test's arguments
    EXPECT_GT(heard[0].started_wall_ns, 1'600'000'000'000'000'000U);
    LiveRecorder late = reader();
    EXPECT_EQ(hear(late, 1), heard);

    // Readers find it, and ignore folders of recorders that are gone.
    std::filesystem::create_directory(sockets.at("tidemark-abcdef"));
    std::vector<LiveRecording> found;
    std::thread finder([&] { found = find_live_recordings(); });
    for (int attempt = 0; attempt < 10; ++attempt) recorder->poll_once({});
    finder.join();
    std::erase_if(found, [](const LiveRecording& recording) { return recording.pid != ::getpid(); });
    EXPECT_EQ(found, heard);
  }
  recorder->finish(std::chrono::milliseconds(0));
  EXPECT_THAT(hear(early, 0), IsEmpty());
  recorder = nullptr;
  EXPECT_FALSE(early.update());
  EXPECT_FALSE(LiveRecorder::connect(live_socket).has_value());
}

TEST_F(LiveTest, ReadersCanDoNoHarm) {
  const RingProcess process(clock(), ring::ticks(clock()));
  hand_over(process);
  LiveRecorder good = reader();
  ASSERT_EQ(hear(good, 1).size(), 1U);

  // Garbage ends the sender's connection.
  LiveRecorder hostile = reader();
  ASSERT_EQ(hear(hostile, 1).size(), 1U);
  const std::string garbage(1000, '\xff');
  ASSERT_EQ(::send(hostile.descriptor(), garbage.data(), garbage.size(), 0), 1000);
  EXPECT_FALSE(is_kept(hostile));

  // Of a hundred, as many are accepted as there is room for; the others are closed.
  std::vector<LiveRecorder> crowd;
  while (crowd.size() < 100) {
    if (auto connected = LiveRecorder::connect(live_socket)) {
      crowd.push_back(std::move(*connected));
    } else {
      recorder->poll_once({});  // too many wait
    }
  }
  for (int attempt = 0; attempt < 5; ++attempt) recorder->poll_once({});
  const auto kept = std::count_if(crowd.begin(), crowd.end(), [](LiveRecorder& one) { return one.update(); });
  EXPECT_EQ(kept, static_cast<std::ptrdiff_t>(LiveClients::kMaxClients - 1));
  EXPECT_TRUE(is_kept(good));
  crowd.clear();
  for (int attempt = 0; attempt < 5; ++attempt) recorder->poll_once({});
  LiveRecorder another = reader();
  EXPECT_EQ(hear(another, 1).size(), 1U) << "there is room again";

  // Meanwhile the program is recorded.
  RingThread thread(process, 0, 1);
  EXPECT_TRUE(thread.allocate(1, 1, 100));
  recorder->finish(std::chrono::milliseconds(0));
  EXPECT_EQ(read(folder.at("run.tide")).events.size(), 1U);
}

TEST_F(LiveTest, RequestsAreSignalledWhileAReaderIsConnected) {
  const RingProcess process(clock(), ring::ticks(clock()));
  hand_over(process);
  RingThread thread(process, 0, 1);
  ASSERT_TRUE(thread.allocate(1, 1, 100));
  auto& connection = process.shared()->lanes[0].connection;
  connection.store(7);
  const std::string question =
      std::filesystem::path(live_socket).parent_path() / ("objects." + std::to_string(::getpid()) + ".question");
  std::ofstream(question) << "first\n";
  for (int attempt = 0; attempt < 5; ++attempt) recorder->poll_once({});
  EXPECT_EQ(connection.load(), 7U);
  LiveRecorder monitor = reader();
  ASSERT_EQ(hear(monitor, 1).size(), 1U);
  EXPECT_EQ(connection.load(), 7U | ring::kQuestionWaits);
  connection.store(7);
  recorder->poll_once({});
  EXPECT_EQ(connection.load(), 7U | ring::kQuestionWaits) << "it is still there";
  EXPECT_EQ(process.shared()->lanes[1].connection.load(), 0U) << "nobody's";
  connection.store(7);
  std::filesystem::remove(question);
  recorder->poll_once({});
  EXPECT_EQ(connection.load(), 7U);
  std::ofstream(question) << "again\n";
  recorder.reset();
  EXPECT_FALSE(std::filesystem::exists(question)) << "that nobody took away";
}

TEST_F(LiveTest, ReaderThatNeverReadsBlocksNothing) {
  LiveRecorder silent = reader();
  for (int number = 0; number < 3; ++number) EXPECT_EQ(run_child(10), 0);
  LiveRecorder good = reader();
  EXPECT_THAT(hear(good, 0), IsEmpty());
  EXPECT_EQ(recorder->files().size(), 3U);
}

TEST_F(LiveTest, AnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  // Even where the file's permissions let it in.
  const std::string place = std::filesystem::path(live_socket).parent_path();
  for (const std::string& path : {sockets.path(), place}) ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(live_socket.c_str(), 0666), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
    if (LiveRecorder::connect(live_socket)) ::_exit(3);  // it does not trust the recorder of another user
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    live_socket.copy(address.sun_path, sizeof(address.sun_path) - 1);
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) ::_exit(4);
    char byte = 0;
    ::_exit(::recv(fd, &byte, 1, 0) == 0 ? 0 : 1);  // the connection ends without data
  }
  int status = -1;
  for (int attempt = 0; attempt < 1000 && ::waitpid(pid, &status, WNOHANG) == 0; ++attempt) recorder->poll_once({});
  EXPECT_EQ(WEXITSTATUS(status), 0);
  LiveRecorder good = reader();
  EXPECT_THAT(hear(good, 0), IsEmpty());
}

TEST_F(LiveTest, WritesSoonerWhileAReaderIsConnected) {
  const RingProcess process(clock(), ring::ticks(clock()));
  hand_over(process);
  LiveRecorder good = reader();
  ASSERT_EQ(hear(good, 1).size(), 1U);
  RingThread thread(process, 0, 1);
  ASSERT_TRUE(thread.allocate(ring::ticks(clock()) - process.start_ticks(), 1, 100));
  std::size_t there = 0;
  for (int attempt = 0; attempt < 1000 && there == 0; ++attempt) {
    recorder->poll_once({});
    there = read(folder.at("run.tide")).events.size();
  }
  EXPECT_EQ(there, 1U);
  recorder->finish(std::chrono::milliseconds(0));
}

}  // namespace
}  // namespace tidemark::testing
