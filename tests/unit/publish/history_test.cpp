// The history file: written data can be read, old points are merged and removed by the rules, and files that are full,
// damaged, locked or of another program are reported.
#include "publish/history/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <mutex>
#include <numeric>
#include <string>

#include "publish/history/database.h"
#include "publish/history/history_writer.h"
#include "temporary_folder.h"

namespace tidemark {
namespace {

using testing::TemporaryFolder;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kWall = 1'700'000'000'000'000'000U;  // ns; whole seconds
constexpr std::int64_t kWallMs = 1'700'000'000'000;
constexpr std::uint64_t kSecond = 1'000'000'000U;

// One GPU with one process, and the host.
MachineState machine() {
  MachineState state;
  state.began_wall_ns = kWall;
  WatchedDevice gpu;
  gpu.key = "0";
  gpu.info.uuid = "GPU-1";
  gpu.info.name = "NVIDIA H100";
  gpu.info.total_bytes = 1000;
  state.devices.push_back(gpu);
  WatchedProcess process;
  process.pid = 42;
  process.name = "python train.py";
  process.devices.push_back({.device = 0, .held = true, .bytes = {}, .used = WatchedUsage{}});
  state.processes.push_back(process);
  return state;
}

void sample(MachineState& state, std::uint64_t time_ns, std::uint64_t bytes, std::optional<std::uint64_t> peak = {}) {
  state.now_ns = time_ns;
  state.now_wall_ns = state.began_wall_ns + time_ns;
  state.devices[0].used.add(time_ns, bytes, peak);
  state.processes[0].devices[0].used.add(time_ns, bytes / 2);
}

class HistoryTest : public ::testing::Test {
 protected:
  HistoryOptions options() {
    return {path_, 30 * 24h, [this](const std::string& text) {
              const std::lock_guard lock(mutex_);
              problems_.push_back(text);
            }};
  }
  Result<History> read(std::optional<std::int64_t> since = {}, std::vector<std::string> devices = {}) {
    return read_history(path_, {since, kWallMs + 1'000'000'000, std::move(devices)});
  }
  /// A history of four seconds: 100, 200 to 900, 300.
  void write_some() {
    HistoryWriter writer(options());
    MachineState state = machine();
    sample(state, 0, 100);
    writer.add(state);
    sample(state, kSecond, 200);
    writer.add(state);
    sample(state, kSecond + kSecond / 2, 400, 900);
    writer.add(state);
    RiskChange change;
    change.device = "0";
    change.now.level = RiskLevel::high;
    change.wall_ns = kWall + 2 * kSecond;
    writer.add(change, state.devices.data(), R"({"x": 1})");
    sample(state, 3 * kSecond, 300);
    writer.add(state);
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.at("history.db");
  std::mutex mutex_;
  std::vector<std::string> problems_;
};

TEST_F(HistoryTest, WrittenDataIsRead) {
  write_some();
  const auto history = read();
  ASSERT_TRUE(history.ok()) << history.error().message;
  EXPECT_THAT(problems_, IsEmpty());
  ASSERT_EQ(history->devices.size(), 1U);
  const HistoryDevice& gpu = history->devices[0];
  EXPECT_EQ(gpu.id, "GPU-1");
  EXPECT_EQ(gpu.key, "0");
  EXPECT_EQ(gpu.name, "NVIDIA H100");
  EXPECT_EQ(gpu.limit_bytes, 1000U);
  EXPECT_EQ(gpu.peak_bytes, 900U);
  EXPECT_EQ(gpu.peak_ms, kWallMs + 1000);
  EXPECT_EQ(gpu.samples, 4U);
  EXPECT_EQ(gpu.mean_bytes, 250U);  // (100 + 200 + 400 + 300) / 4
  EXPECT_EQ(gpu.last_bytes, 300U);
  ASSERT_EQ(gpu.points.size(), 3U);
  EXPECT_EQ(gpu.points[1].high_bytes, 900U);
  EXPECT_EQ(gpu.points[1].mean_bytes, 300U);
  ASSERT_EQ(gpu.processes.size(), 1U);
  EXPECT_EQ(gpu.processes[0].pid, 42);
  EXPECT_EQ(gpu.processes[0].name, "python train.py");
  EXPECT_EQ(gpu.processes[0].peak_bytes, 200U);
  ASSERT_EQ(history->risks.size(), 1U);
  EXPECT_EQ(history->risks[0].device, "GPU-1");
  EXPECT_EQ(history->risks[0].level, "high");
  EXPECT_EQ(history->risks[0].assessment, R"({"x": 1})");
}

// Read every other second, as if reading took long; one of the samples in between is the highest.
TEST_F(HistoryTest, IncludesAllSamplesBetweenReads) {
  {
    HistoryWriter writer(options());
    MachineState state = machine();
    for (std::uint64_t n = 0; n < 60; ++n) {
      sample(state, n * kSecond / 10, n == 33 ? 800 : 100 + n,
             n == 7 ? std::optional<std::uint64_t>(950) : std::nullopt);
      if (n % 20 == 19) writer.add(state);
    }
  }
  const auto history = read();
  ASSERT_TRUE(history.ok()) << history.error().message;
  const HistoryDevice& gpu = history->devices[0];
  EXPECT_EQ(gpu.samples, 60U);
  EXPECT_EQ(gpu.peak_bytes, 950U);
  EXPECT_EQ(gpu.peak_ms, kWallMs);
  ASSERT_EQ(gpu.points.size(), 6U);
  EXPECT_EQ(gpu.points[1].high_bytes, 119U);
  EXPECT_EQ(gpu.points[3].high_bytes, 800U);
  EXPECT_EQ(gpu.points[4].mean_bytes, 144U);  // (140 + … + 149) / 10 = 144.5
  EXPECT_EQ(gpu.processes[0].peak_bytes, 400U);
}

// Recorded peaks of the time after a sample, while its row is incomplete and at the very end.
TEST_F(HistoryTest, RecordedPeaksAreThoseOfTheirSample) {
  {
    HistoryWriter writer(options());
    MachineState state = machine();
    for (const std::uint64_t peak : {500U, 600U, 700U}) {
      sample(state, state.now_ns + kSecond, 100);
      writer.add(state);
      state.devices[0].used.add_peak(peak);
      sample(state, state.now_ns + kSecond / 10, 100);
      writer.add(state);
      state.devices[0].used.add_peak(peak + 10);
      sample(state, state.now_ns + kSecond, 100);
      sample(state, state.now_ns + kSecond, 100);
      writer.add(state);
    }
    state.devices[0].used.add_peak(900);
    writer.add(state);
  }
  const auto history = read();
  ASSERT_TRUE(history.ok()) << history.error().message;
  std::vector<std::uint64_t> high;
  for (const HistoryPoint& point : history->devices[0].points) high.push_back(point.high_bytes);
  EXPECT_THAT(high, ElementsAre(510, 100, 100, 610, 100, 100, 710, 100, 900));
}

TEST_F(HistoryTest, RecordedPeaksRaiseAPassedRow) {
  HistoryCollector collector;
  MachineState state = machine();
  sample(state, kSecond, 100);
  collector.add(state);
  EXPECT_EQ(collector.take(kWallMs + 60'000).size(), 2U);  // of the device and the process
  collector.add(state);
  EXPECT_THAT(collector.take(kWallMs + 60'000), IsEmpty());
  state.devices[0].used.add_peak(900);
  collector.add(state);
  collector.add(state);
  const std::vector<HistoryRow> rows = collector.take(kWallMs + 60'000);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].time_ms, kWallMs + 1000);
  EXPECT_EQ(rows[0].high_bytes, 900);
}

TEST_F(HistoryTest, OfATimeAndADevice) {
  write_some();
  EXPECT_EQ(read(kWallMs + 2000)->devices[0].peak_bytes, 300U);
  EXPECT_EQ(read(kWallMs + 2001)->risks.size(), 0U);
  EXPECT_EQ(read({}, {"GPU-1"})->devices.size(), 1U);
  const auto never_seen = read({}, {"0", "1"});
  ASSERT_FALSE(never_seen.ok());
  EXPECT_EQ(never_seen.error().message, "--device 1: " + path_ + " has no such device (it has 0)");
  EXPECT_THAT(read(kWallMs + 4000, {"0"})->devices, IsEmpty()) << "known, but not seen in this time";
}

// For a picture: each device by its own number, at times of day.
TEST(HistoryState, HasNumbersAndTimesOfDay) {
  History history;
  for (const char* key : {"1", "0:2", "cpu"}) {
    HistoryDevice& device = history.devices.emplace_back();
    device.key = key;
    device.id = device.key == "cpu" ? "host" : "GPU";
    device.first_ms = kWallMs;
    device.peak_ms = kWallMs + 90'000;
    device.points = {{kWallMs, 60'000, 5, 4}, {kWallMs + 60'000, 60'000, 9, 6}, {kWallMs + 120'000, 60'000, 3, 2}};
  }
  const MachineState state = as_state(history);
  ASSERT_EQ(state.devices.size(), 3U);
  EXPECT_EQ(state.devices[0].info.index, 1U);
  EXPECT_EQ(state.devices[1].info.index, 2U);
  EXPECT_EQ(state.devices[1].info.instance_of, 0U);
  EXPECT_TRUE(state.devices[2].is_host);
  EXPECT_EQ(state.wall_ns(0), kWall);
  EXPECT_EQ(state.wall_ns(state.devices[0].used.peak_at_ns()), kWall + 90 * kSecond) << "within its point";
}

TEST_F(HistoryTest, IsForItsOwnerAndGoesOn) {
  write_some();
  struct stat facts {};
  ASSERT_EQ(::stat(path_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
  write_some();  // again, for the same seconds: neither doubled nor an error
  EXPECT_THAT(problems_, IsEmpty());
  EXPECT_EQ(read()->devices[0].points.size(), 3U);
}

TEST_F(HistoryTest, GoesOnWithTheClockThatIsSet) {
  {
    HistoryWriter writer(options());
    MachineState state = machine();
    sample(state, kSecond, 100);
    writer.add(state);
    sample(state, 2 * kSecond, 200);
    state.now_wall_ns += 3600 * kSecond;
    writer.add(state);
    sample(state, 3 * kSecond, 300);
    state.now_wall_ns -= 60 * kSecond;
    writer.add(state);
  }
  const auto history = read();
  ASSERT_TRUE(history.ok()) << history.error().message;
  EXPECT_THAT(problems_, IsEmpty());
  ASSERT_EQ(history->devices.size(), 1U);
  const HistoryDevice& gpu = history->devices[0];
  EXPECT_EQ(gpu.first_ms, kWallMs - 57'000);
  EXPECT_EQ(gpu.peak_ms, kWallMs - 57'000);
  EXPECT_EQ(read(kWallMs + 3'602'000)->devices[0].peak_bytes, 200U);
}

class RetentionTest : public HistoryTest {
 protected:
  RetentionTest() {
    DatabaseError error;
    database_ = Database::open(path_, DatabaseUse::write, error);
    create_schema(*database_);
    database_->execute("INSERT INTO series VALUES(1, 'GPU-1', '0', '', 0, ''), (2, 'GPU-1', '0', '', 7, 'old')");
  }
  void add(std::int64_t seconds_ago, std::int64_t high, std::int64_t mean, std::int64_t count, int series = 1) {
    Statement row = database_->prepare("INSERT INTO points VALUES(?1, ?2, 1000, ?3, ?4, ?5, NULL)");
    row.bind(1, series).bind(2, now_ - seconds_ago * 1000).bind(3, high).bind(4, mean).bind(5, count);
    ASSERT_TRUE(row.run());
  }
  /// "SPAN HIGH MEAN COUNT" of each point, oldest first.
  std::vector<std::string> points() {
    Statement row =
        database_->prepare("SELECT span || ' ' || high || ' ' || mean || ' ' || count FROM points ORDER BY time");
    std::vector<std::string> all;
    while (row.step()) all.push_back(row.text(0));
    return all;
  }
  const std::int64_t now_ = 1'700'000'400'000;  // a multiple of 600 s: 2833334 of them
  std::optional<Database> database_;
};

TEST_F(RetentionTest, OldPointsAreJoined) {
  ASSERT_EQ(now_ % 600'000, 0);
  add(10, 9, 9, 1);  // young: stays
  add(3602, 50, 10, 1);
  add(3603, 20, 20, 3);
  add(3611, 30, 30, 1);           // of the 10 s before
  add(24 * 3600 + 5, 70, 10, 2);  // of one minute
  add(24 * 3600 + 55, 60, 40, 1);
  ASSERT_TRUE(maintain(*database_, now_, 30 * 24h));
  EXPECT_THAT(points(), ElementsAre("60000 70 20 3", "10000 30 30 1", "10000 50 18 4", "1000 9 9 1"));
  // A second time changes nothing: merged points are not merged again.
  ASSERT_TRUE(maintain(*database_, now_, 30 * 24h));
  EXPECT_EQ(points().size(), 4U);
  // A week later all points are of ten minutes.
  ASSERT_TRUE(maintain(*database_, now_ + 8LL * 24 * 3'600'000, 30 * 24h));
  EXPECT_THAT(points(), ElementsAre("600000 70 20 3", "600000 50 20 5", "600000 9 9 1"));
}

TEST_F(RetentionTest, OldPointsAreRemovedWithTheirSeries) {
  add(10, 1, 1, 1);
  add(40LL * 24 * 3600, 2, 2, 1, 2);
  database_->execute("INSERT INTO risks VALUES(0, 'GPU-1', '0', 'low', 'high', '{}')");
  ASSERT_TRUE(maintain(*database_, now_, 30 * 24h));
  EXPECT_EQ(points().size(), 1U);
  EXPECT_EQ(database_->number("SELECT count(*) FROM series"), 1);
  EXPECT_EQ(database_->number("SELECT count(*) FROM risks"), 0);
}

TEST_F(HistoryTest, AnotherProgramsDatabaseIsLeftAlone) {
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &other), SQLITE_OK);
  sqlite3_exec(other, "CREATE TABLE t(x)", nullptr, nullptr, nullptr);
  sqlite3_close(other);
  const auto size = std::filesystem::file_size(path_);
  write_some();
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_THAT(problems_[0], HasSubstr("not a history of Tidemark"));
  EXPECT_EQ(std::filesystem::file_size(path_), size);
  EXPECT_THAT(read().error().message, HasSubstr("not a history of Tidemark"));
}

// A view with a table's name would run its query.
TEST_F(HistoryTest, ViewsInPlaceOfTablesAreRefused) {
  write_some();
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &other), SQLITE_OK);
  sqlite3_exec(other,
               "DROP TABLE risks; CREATE VIEW risks AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) "
               "SELECT i AS time FROM n",
               nullptr, nullptr, nullptr);
  sqlite3_close(other);
  EXPECT_THAT(read().error().message, HasSubstr("not a history of Tidemark"));
}

// An index of an expression runs when the file is checked.
TEST_F(HistoryTest, IndexesOfExpressionsAreRefused) {
  write_some();
  const auto change = [&](const char* statements) {
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &other), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(other, statements, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(other);
  };
  change("ANALYZE; CREATE VIEW later AS SELECT * FROM points");
  EXPECT_TRUE(read().ok());
  change("CREATE INDEX slow ON points(length(hex(zeroblob(100000 + time % 2))))");
  EXPECT_THAT(read().error().message, HasSubstr("indexes of another program"));
  write_some();
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_THAT(problems_[0], HasSubstr("indexes of another program"));
}

// After a crash SQLite deletes the file named in a journal: when several databases were changed together, the list of
// them.
TEST_F(HistoryTest, AJournalHasNoOtherFileDeleted) {
  write_some();
  {
    DatabaseError error;  // no WAL, which a journal would be ignored for
    Database::open(path_, DatabaseUse::write, error)->execute("PRAGMA journal_mode=DELETE");
  }
  const std::string kept = folder_.write("kept", "a file of the user");
  const auto numbers = [](std::initializer_list<std::size_t> values) {
    std::string bytes;
    for (const std::size_t value : values) {
      for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
    }
    return bytes;
  };
  constexpr std::size_t kSector = 512;
  constexpr std::size_t kPage = 4096;
  const std::string magic("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7");
  std::string journal = magic + numbers({0, 0, std::filesystem::file_size(path_) / kPage, kSector, kPage});
  journal.resize(kSector, '\0');
  const std::size_t sum = std::accumulate(kept.begin(), kept.end(), std::size_t{0});
  journal += numbers({(std::size_t{1} << 30) / kPage + 1}) + kept + numbers({kept.size(), sum}) + magic;
  folder_.write("history.db-journal", journal);
  write_some();
  EXPECT_TRUE(std::filesystem::exists(kept));
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_THAT(problems_[0], HasSubstr("history.db-journal names " + kept));
}

TEST_F(HistoryTest, FifoBesideItDoesNotBlock) {
  write_some();
  for (const char* const suffix : {"-journal", "-wal"}) {
    ASSERT_EQ(::mkfifo((path_ + suffix).c_str(), 0600), 0);
    EXPECT_THAT(read().error().message, HasSubstr("is not a regular file"));
    problems_.clear();
    write_some();
    ASSERT_EQ(problems_.size(), 1U);
    EXPECT_THAT(problems_[0], HasSubstr("is not a regular file"));
    std::filesystem::remove(path_ + suffix);
    DatabaseError error;
    Database::open(path_, DatabaseUse::write, error)->execute("PRAGMA journal_mode=DELETE");
  }
}

// SQLite keeps ":memory:" in memory.
TEST_F(HistoryTest, NamesAreOfFiles) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(std::filesystem::path(path_).parent_path());
  DatabaseError error;
  auto database = Database::open(":memory:", DatabaseUse::write, error);
  EXPECT_TRUE(create_schema(*database));
  EXPECT_GT(std::filesystem::file_size(":memory:"), 0U);
  std::filesystem::current_path(before);
}

TEST_F(HistoryTest, DamagedFilesAreSaidOnce) {
  folder_.write("history.db", std::string(8192, 'x'));
  write_some();
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_THAT(problems_[0], HasSubstr("damaged, or no history"));
  EXPECT_THAT(read().error().message, HasSubstr("damaged, or no history"));
}

TEST_F(HistoryTest, DamageWithinIsFoundWhenReading) {
  write_some();
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(path_));
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(size / 2);
    file << std::string(static_cast<std::size_t>(size / 2), '\xff');
  }
  EXPECT_THAT(read().error().message, HasSubstr("damaged"));
  // Data that may still be recovered is not overwritten.
  const auto bytes = [&] {
    std::ifstream file(path_, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string before = bytes();
  write_some();
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_THAT(problems_[0], HasSubstr("damaged"));
  EXPECT_EQ(bytes(), before);
}

TEST_F(HistoryTest, ImpossibleTimes) {
  write_some();
  DatabaseError error;
  Database::open(path_, DatabaseUse::write, error)
      ->execute(
          "UPDATE points SET time = -9223372036854775807 WHERE time = (SELECT min(time) FROM points);"
          "UPDATE points SET span = 9223372036854775807");
  const auto history = read();
  ASSERT_TRUE(history.ok()) << history.error().message;
  ASSERT_EQ(history->devices.size(), 1U);
  EXPECT_GE(history->devices[0].first_ms, 0);
  EXPECT_LE(history->devices[0].last_ms, 9'000'000'000'000);
}

TEST_F(HistoryTest, LockedFileIsReported) {
  write_some();
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  write_some();
  sqlite3_close(other);
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_THAT(problems_[0], HasSubstr("another program has it locked"));
}

TEST_F(HistoryTest, FullDiskIsReported) {
  std::filesystem::create_symlink("/dev/full", path_);
  write_some();
  EXPECT_EQ(problems_.size(), 1U);
}

TEST_F(HistoryTest, NewerVersionsAndMissingFiles) {
  EXPECT_THAT(read().error().message, HasSubstr("--history"));
  write_some();
  DatabaseError error;
  Database::open(path_, DatabaseUse::write, error)->execute("PRAGMA user_version=2");
  EXPECT_THAT(read().error().message, HasSubstr("newer version"));
}

}  // namespace
}  // namespace tidemark
