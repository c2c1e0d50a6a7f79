// Recorder::create() and the functions with which a test acts as its processes.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collect/recorder/recorder.h"
#include "ring_process.h"
#include "temporary_folder.h"
#include "trace_test_support.h"

namespace tidemark::testing {

inline constexpr ring::Hello kHello{ring::kMagic, ring::kVersion, 0};

/// Folders for the recorder's socket, until the test ends.
class SocketPlaces {
 public:
  explicit SocketPlaces(const std::string& folder) {
    for (std::size_t index = 0; index < kVariables.size(); ++index) {
      if (const char* value = ::getenv(kVariables[index])) before_[index] = value;
      ::setenv(kVariables[index], folder.c_str(), 1);
    }
    ::unsetenv(kVariables[0]);  // if it is set, the others are ignored
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
  static constexpr std::array<const char*, 3> kVariables = {"TIDEMARK_RUNTIME_DIR", "XDG_RUNTIME_DIR", "TMPDIR"};
  std::array<std::optional<std::string>, kVariables.size()> before_;
};

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
  /// Value of a variable set for recorded programs.
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

  /// A child that records `events` events and then ends, by the signal if one is given. Returns its exit status. It
  /// waits until its file exists: the recorder cannot read the command line of a process that is gone.
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

}  // namespace tidemark::testing
