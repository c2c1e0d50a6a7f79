// A recorder with too few resources: descriptors, disk space, a file of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "recorder_fixture.h"

namespace tidemark::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Processes that call `what` on a start signal, and are killed at the end.
class Crowd {
 public:
  Crowd(std::size_t size, const std::function<void()>& what) {
    if (::pipe(start_.data()) != 0) std::abort();
    for (std::size_t count = 0; count < size; ++count) {
      pids_.push_back(::fork());
      if (pids_.back() != 0) continue;
      char go = 0;
      if (::read(start_[0], &go, 1) == 1) what();
      ::_exit(1);
    }
  }
  ~Crowd() { kill(); }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  void start_one() const {
    if (::write(start_[1], "g", 1) != 1) std::abort();
  }
  void kill() {
    for (const pid_t pid : pids_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    pids_.clear();
  }

 private:
  std::array<int, 2> start_{};
  std::vector<pid_t> pids_;
};

/// Allows this process `more` descriptors than it has, while it exists.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(unsigned long more) {
    const int next = ::dup(0);
    ::close(next);
    ::getrlimit(RLIMIT_NOFILE, &before_);
    value_ = static_cast<unsigned long>(next) + more;
    const rlimit limit{value_, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

  [[nodiscard]] unsigned long value() const { return value_; }

 private:
  rlimit before_{};
  unsigned long value_ = 0;
};

[[noreturn]] void pause_until_killed() {
  for (;;) ::pause();
}

class RecorderFaultsTest : public RecorderTest {
 protected:
  /// Number of files.
  [[nodiscard]] std::size_t recorded() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
  }
  /// Whether a process waits for the recorder.
  [[nodiscard]] bool pending_connection() const {
    std::ifstream table("/proc/net/unix");
    const std::string sockets_now(std::istreambuf_iterator<char>(table), {});
    // A line for the socket that listens, and one for each connection of it.
    const std::string path = variable(ring::kSocketVariable);
    const auto first = sockets_now.find(path);
    return first != std::string::npos && sockets_now.find(path, first + 1) != std::string::npos;
  }
};

TEST_F(RecorderFaultsTest, UnwritableFileIsReportedOnce) {
  create();
  std::filesystem::remove_all(folder.path());
  const RingProcess process(clock(), ring::ticks(clock()));
  hand_over(process);
  recorder->poll_once({});
  recorder->poll_once({});
  EXPECT_THAT(said, ElementsAre(AllOf(HasSubstr("run.tide"), HasSubstr("the program continues"))));
  EXPECT_EQ(process.shared()->control.stop.load(), 1U);
  EXPECT_THAT(recorder->files(), IsEmpty());
}

TEST_F(RecorderFaultsTest, CountsProcessesThatHaveNoDescriptorLeft) {
  create();
  constexpr std::size_t kProcesses = 6;
  Crowd crowd(kProcesses, [this] {
    const RingProcess process(clock(), ring::ticks(clock()));
    hand_over(process);
    RingThread thread(process, 0, 1);
    thread.put(ring::RecordKind::allocate, {}, ring::kNoStack, {ring::ticks(clock()), 1, 8});
    pause_until_killed();
  });
  const DescriptorLimit limit(7);
  const auto taken_in = [this] { return recorder->unrecorded().count + recorded(); };
  for (std::size_t process = 1; process <= kProcesses; ++process) {
    crowd.start_one();
    for (int attempt = 0; attempt < 1000 && taken_in() < process; ++attempt) recorder->poll_once({});
  }
  // Two stay free to accept processes; a recording needs one for its file, and no other if there are few. This process
  // may have inherited some.
  const std::size_t files = recorded();
  EXPECT_GE(files, 1U);
  EXPECT_GE(recorder->unrecorded().count, 1U);
  EXPECT_EQ(recorder->unrecorded().count + files, kProcesses);
  EXPECT_THAT(recorder->unrecorded().reason, HasSubstr("ulimit -n " + std::to_string(limit.value())));
  EXPECT_THAT(said, Each(AllOf(HasSubstr("is not recorded: too few"), HasSubstr("the program continues"))));

  crowd.kill();
  for (int attempt = 0; attempt < 1000 && recorder->files().size() < files; ++attempt) recorder->poll_once({});
  ASSERT_EQ(recorder->files().size(), files);
  for (const RecordedFile& file : recorder->files()) {
    const Recording recording = read(file.path);
    EXPECT_EQ(recording.events.size(), 1U);
    EXPECT_EQ(recording.lost(QualityId::unrecorded_processes), recorder->unrecorded().count);
    EXPECT_TRUE(recording.definitions.end->process_exited) << "seen without a pidfd";
  }
}

TEST_F(RecorderFaultsTest, WaitsIfNoConnectionCanBeAccepted) {
  create();
  Crowd crowd(1, [this] {
    const RingProcess process(clock(), ring::ticks(clock()));
    hand_over(process);
    pause_until_killed();
  });
  {
    crowd.start_one();
    while (!pending_connection()) std::this_thread::yield();
    const DescriptorLimit none(0);
    const auto before = std::chrono::steady_clock::now();
    for (int count = 0; count < 20; ++count) recorder->poll_once({});
    EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(150)) << "and not all the time";
  }
  for (int attempt = 0; attempt < 1000 && recorded() == 0; ++attempt) recorder->poll_once({});
  EXPECT_EQ(recorded(), 1U) << "it was not lost";
  EXPECT_EQ(recorder->unrecorded().count, 0U);
  crowd.kill();
}

TEST_F(RecorderFaultsTest, LimitsMessagesForManyProcesses) {
  create();
  std::filesystem::remove_all(folder.path());
  std::vector<std::unique_ptr<RingProcess>> processes;
  for (int count = 0; count < 20; ++count) {
    processes.push_back(std::make_unique<RingProcess>(clock(), ring::ticks(clock())));
    hand_over(*processes.back());
  }
  recorder->poll_once({});
  recorder->finish(std::chrono::milliseconds(0));
  EXPECT_EQ(recorder->unrecorded().count, 20U);
  EXPECT_EQ(said.size(), 3U);
  EXPECT_THAT(said, Each(HasSubstr("is not recorded")));
  EXPECT_THAT(recorder->no_recording_reason(), HasSubstr("run.tide: cannot be created"))
      << "and not that no process came";
}

TEST_F(RecorderFaultsTest, LimitsMessagesForManyRunningProcesses) {
  create();
  Crowd crowd(5, [this] {
    const RingProcess process(clock(), ring::ticks(clock()));
    hand_over(process);
    pause_until_killed();
  });
  for (std::size_t process = 1; process <= 5; ++process) {
    crowd.start_one();
    for (int attempt = 0; attempt < 1000 && recorded() < process; ++attempt) recorder->poll_once({});
  }
  recorder->finish(std::chrono::milliseconds(0));
  ASSERT_EQ(said.size(), 4U);
  EXPECT_THAT(said[2], HasSubstr("is still running"));
  EXPECT_EQ(said[3], "more processes still running, whose recordings were ended: 2");
}

TEST_F(RecorderFaultsTest, ReportsWhyManualProgramHasNoRecording) {
  RecorderOptions options;
  options.manual = true;
  auto created = Recorder::create(options, [](const std::string&) {});
  recorder = std::move(*created);
  EXPECT_THAT(recorder->no_recording_reason(), HasSubstr("did not load the collector (--manual)"));
  std::ofstream(variable(ring::kSocketVariable) + ".seen") << "T";
  EXPECT_THAT(recorder->no_recording_reason(), HasSubstr("did not call tidemark_attach()"));
}

TEST_F(RecorderFaultsTest, RemovesTheFoldersOfKilledRecorders) {
  const pid_t killed = ::fork();
  if (killed == 0) {
    create();
    ::raise(SIGKILL);
  }
  ::waitpid(killed, nullptr, 0);
  ASSERT_FALSE(std::filesystem::is_empty(sockets.path()));
  const std::string other = sockets.at("tidemark-abcdef");  // of another program with the same name
  std::filesystem::create_directory(other);
  const auto folders = [this] {
    return std::distance(std::filesystem::directory_iterator(sockets.path()), std::filesystem::directory_iterator());
  };
  create();
  const auto living = std::move(recorder);
  EXPECT_EQ(folders(), 2);
  create();
  EXPECT_EQ(folders(), 3) << "the first one lives";
  EXPECT_TRUE(std::filesystem::exists(other));
}

// A file size limit simulates a full disk.
TEST_F(RecorderFaultsTest, IncompleteRecordingIsReported) {
  create();
  const RingProcess process(clock(), ring::ticks(clock()));
  hand_over(process);
  recorder->poll_once({});
  RingThread thread(process, 0, 1);
  put_incompressible(thread);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{40'000, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  recorder->finish(std::chrono::milliseconds(0));
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  ASSERT_EQ(recorder->files().size(), 1U);
  EXPECT_TRUE(recorder->files()[0].failed);
  EXPECT_EQ(recorder->files()[0].bytes, std::filesystem::file_size(folder.at("run.tide")));
  EXPECT_LE(recorder->files()[0].bytes, 40'000U);
  EXPECT_THAT(said, Contains(HasSubstr("File too large")));
  const Recording recording = read(folder.at("run.tide"));
  EXPECT_EQ(recording.error, "");
  EXPECT_EQ(recording.lost(QualityId::disk), 1U);
  ASSERT_TRUE(recording.definitions.end.has_value()) << "and not that the recorder was killed";
  EXPECT_FALSE(recording.definitions.end->process_exited);
}

}  // namespace
}  // namespace tidemark::testing
