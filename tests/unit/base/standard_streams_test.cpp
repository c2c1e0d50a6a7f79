#include "base/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>

namespace tidemark {
namespace {

using namespace std::chrono_literals;

/// Makes stderr a pipe that is full, with the file description that is blocking. Returns the end to read from.
int fill_stderr() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0 || ::dup2(ends[1], STDERR_FILENO) < 0) ::_exit(10);
  const int flags = ::fcntl(STDERR_FILENO, F_GETFL);
  ::fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
  while (::write(STDERR_FILENO, "x", 1) == 1) {
  }
  ::fcntl(STDERR_FILENO, F_SETFL, flags);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return ends[0];
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t got = 0; (got = ::read(fd, part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  return text;
}

/// Runs in a separate process, which a signal ends if it waits: its exit code.
template <typename Work>
int in_child(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    ::_exit(work());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(StandardStreams, MessagesWithoutRoomAreDropped) {
  EXPECT_EQ(in_child([] {
              const int reader = fill_stderr();
              wait_for_stderr_at_most(0ms);
              say("lost");
              say("lost too");
              if (dropped_messages() != 2) return 1;
              if (read_all(reader).find("lost") != std::string::npos) return 2;
              say("heard");
              if (read_all(reader) != "tidemark: heard\n") return 3;
              if (dropped_messages() != 2) return 4;
              return (::fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK) == 0 ? 0 : 5;  // others share it
            }),
            0);
}

TEST(StandardStreams, WaitsForRoomAsLongAsItMayInAll) {
  EXPECT_EQ(in_child([] {
              fill_stderr();
              wait_for_stderr_at_most(50ms);
              const auto began = std::chrono::steady_clock::now();
              say("lost");
              if (std::chrono::steady_clock::now() - began < 50ms) return 1;
              for (int n = 0; n < 1000; ++n) say("lost too");  // 50 s if each waited
              return dropped_messages() == 1001 ? 0 : 2;
            }),
            0);
}

TEST(StandardStreams, ALongMessageIsCutOffWhereThePipeEnds) {
  EXPECT_EQ(in_child([] {
              const int reader = fill_stderr();
              read_all(reader);
              wait_for_stderr_at_most(0ms);
              say(std::string(1 << 20, 'm'));
              const std::size_t got = read_all(reader).size();
              return got > 4096 && got < (1 << 20) && dropped_messages() == 1 ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace tidemark
