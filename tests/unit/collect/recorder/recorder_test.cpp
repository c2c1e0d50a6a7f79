// The recorder of a job, spoken to by hand: processes that connect, and whatever else may come to its socket.
#include "collect/recorder/recorder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <array>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>
#include <thread>

#include "ring_process.h"
#include "temporary_folder.h"
#include "trace_test_support.h"

namespace tidemark::testing {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr ring::Hello kHello{ring::kMagic, ring::kVersion, 0};

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

/// Where the recorder may put its socket, until the test ends.
class SocketPlaces {
 public:
  explicit SocketPlaces(const std::string& folder) {
    for (std::size_t index = 0; index < kVariables.size(); ++index) {
      if (const char* value = ::getenv(kVariables[index])) before_[index] = value;
      ::setenv(kVariables[index], folder.c_str(), 1);
    }
  }
  ~SocketPlaces() {
    for (std::size_t index = 0; index < kVariables.size(); ++index) {
      if (before_[index]) {
        ::setenv(kVariables[index], before_[index]->c_str(), 1);
      } else {
        ::unsetenv(kVariables[index]);
      }
    }
  }
  SocketPlaces(const SocketPlaces&) = delete;
  SocketPlaces& operator=(const SocketPlaces&) = delete;

 private:
  static constexpr std::array<const char*, 2> kVariables = {"XDG_RUNTIME_DIR", "TMPDIR"};
  std::array<std::optional<std::string>, 2> before_;
};

/// Processes that do `what` when they are told to start, and are killed in the end.
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

/// Allows this process `more` descriptors than it has, as long as it lives.
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

class RecorderTest : public ::testing::Test {
 protected:
  void create(std::uint64_t max_file_bytes = 0) {
    RecorderOptions options;
    options.output = folder.at("run.tide");
    options.max_file_bytes = max_file_bytes;
    options.stack_mode = "none";
    options.samples.enabled = samples;
    auto created = Recorder::create(options, [this](const std::string& line) { said.push_back(line); });
    ASSERT_TRUE(created.ok()) << created.error().message;
    recorder = std::move(*created);
  }
  /// Value of a variable that recorded programs get.
  [[nodiscard]] std::string variable(const std::string& name) const {
    for (const std::string& entry : recorder->environment()) {
      if (entry.rfind(name + "=", 0) == 0) return entry.substr(name.size() + 1);
    }
    return "";
  }
  [[nodiscard]] ring::Clock clock() const {
    return variable(ring::kClockVariable) == "tsc" ? ring::Clock::tsc : ring::Clock::monotonic;
  }

  [[nodiscard]] int connect() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    variable(ring::kSocketVariable).copy(address.sun_path, sizeof(address.sun_path) - 1);
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) std::abort();
    return fd;
  }
  /// Sends bytes and descriptors (at most 4) and closes the connection.
  void send(const void* bytes, std::size_t size, const std::vector<int>& descriptors) const {
    const int fd = connect();
    iovec data{const_cast<void*>(bytes), size};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
      std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
    }
    if (::sendmsg(fd, &message, MSG_NOSIGNAL) < 0) std::abort();
    ::close(fd);
  }
  void hand_over(const RingProcess& process) const { send(&kHello, sizeof(kHello), {process.fd()}); }

  /// How many files there are.
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

  /// A child that records `events` events and then ends, by the signal if one is given. Its exit status.
  /// It waits until its file is there: of a process that is gone already, the recorder cannot learn the command line.
  int run_child(std::uint64_t events, int end_signal = 0) {
    std::array<int, 2> go_on{};
    if (::pipe2(go_on.data(), O_CLOEXEC) != 0) std::abort();
    const pid_t pid = ::fork();
    if (pid == 0) {
      {
        const RingProcess process(clock(), ring::ticks(clock()));
        hand_over(process);
        ::close(go_on[1]);
        char nothing = 0;
        if (::read(go_on[0], &nothing, 1) != 0) ::_exit(1);
        RingThread thread(process, 0, static_cast<std::uint32_t>(::getpid()));
        for (std::uint64_t number = 1; number <= events; ++number) {
          const std::uint64_t time = ring::ticks(clock()) - process.start_ticks();
          if (!thread.allocate(time, number, 100 * number)) ::_exit(1);
        }
        if (end_signal != 0) ::kill(::getpid(), end_signal);
      }
      ::_exit(0);
    }
    child = pid;
    ::close(go_on[0]);
    for (int attempt = 0; attempt < 1000 && !std::filesystem::exists(folder.at("run.tide")); ++attempt) {
      recorder->poll_once({});
    }
    ::close(go_on[1]);
    int status = -1;
    for (int attempt = 0; attempt < 1000 && ::waitpid(pid, &status, WNOHANG) == 0; ++attempt) recorder->poll_once({});
    for (int attempt = 0; attempt < 1000 && recorder->files().empty(); ++attempt) recorder->poll_once({});
    return status;
  }

  /// More than 100 kB of events, at the first ticks of the process.
  static void put_incompressible(RingThread& thread) {
    std::uint64_t random = 1;
    for (std::uint64_t time = 0; time < 20'000; ++time) {
      random = random * 6364136223846793005U + 1442695040888963407U;
      thread.allocate(time, random, random >> 20);
    }
  }

  static Recording read(const std::string& path) { return read_all(TraceReader::open(path)); }

  TemporaryFolder sockets;
  TemporaryFolder folder;
  SocketPlaces places{sockets.path()};
  bool samples = false;
  std::vector<std::string> said;
  std::unique_ptr<Recorder> recorder;
  pid_t child = -1;
};

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

TEST_F(RecorderTest, GoesOnWhateverComesToItsSocket) {
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
  EXPECT_EQ(open_descriptors(), descriptors + 1) << "the ring of this test, and nothing else";
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

  // This process does not end: its recording does.
  recorder->finish(std::chrono::milliseconds(0));
  ASSERT_EQ(recorder->files().size(), 2U);
  EXPECT_EQ(recorder->files()[1].path, folder.at("run.pid" + std::to_string(::getpid()) + ".tide"));
  EXPECT_EQ(recorder->files()[1].event_count, 1U);
  EXPECT_EQ(after.shared()->control.stop.load(), 1U);
  EXPECT_THAT(said, ElementsAre(HasSubstr("is still running")));
  EXPECT_FALSE(read(recorder->files()[1].path).definitions.end->process_exited);
}

TEST_F(RecorderTest, AFileThatCannotBeWrittenIsSaidOnce) {
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

TEST_F(RecorderTest, CountsProcessesThatHaveNoDescriptorLeft) {
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
  // Two stay free to take processes in; a recording needs one for its file, and where there are few no other. This
  // process may have inherited some.
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

TEST_F(RecorderTest, WaitsWhereNoConnectionCanBeAccepted) {
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

TEST_F(RecorderTest, SaysLittleOfManyProcesses) {
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
  EXPECT_THAT(said, ElementsAre(HasSubstr("not recorded"), HasSubstr("not recorded"), HasSubstr("not recorded"),
                                "17 more processes are not recorded"));
  EXPECT_THAT(recorder->why_nothing(), HasSubstr("run.tide: cannot be created")) << "and not that no process came";
}

TEST_F(RecorderTest, SaysWhenAFileReachesItsLimit) {
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
  EXPECT_LE(std::filesystem::file_size(folder.at("run.tide")), 24U * 1024);
  EXPECT_EQ(read(folder.at("run.tide")).lost(QualityId::size_limit), 1U);
}

// A fast program may be gone before the recorder has seen what it left in the rings.
TEST_F(RecorderTest, SaysSoWhenOnlyTheLastEventsReachTheLimit) {
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
  EXPECT_LE(std::filesystem::file_size(folder.at("run.tide")), 24U * 1024);
  EXPECT_EQ(read(folder.at("run.tide")).lost(QualityId::size_limit), 1U);
}

TEST_F(RecorderTest, TellsAProcessOfAnotherVersionApart) {
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

TEST_F(RecorderTest, SaysWhyNothingWasRecorded) {
  create();
  const std::string marks = variable(ring::kSocketVariable) + ".seen";
  ASSERT_TRUE(std::filesystem::exists(marks));
  EXPECT_THAT(recorder->why_nothing(), HasSubstr("no process loaded the collector"));
  std::ofstream(marks) << "N";
  EXPECT_THAT(recorder->why_nothing(), HasSubstr("no process of the program loaded PyTorch"));
  std::ofstream(marks) << "NNT";
  EXPECT_THAT(recorder->why_nothing(), HasSubstr("PyTorch was loaded"));
}

TEST(RecorderCreate, SaysWhereItFoundNoPlace) {
  const SocketPlaces places("/nonexistent");
  // /tmp is the last resort.
  auto created = Recorder::create({}, [](const std::string&) {});
  ASSERT_TRUE(created.ok());
  EXPECT_THAT((*created)->environment()[0], HasSubstr("TIDEMARK_SOCKET=/tmp/tidemark-"));
}

}  // namespace
}  // namespace tidemark::testing
