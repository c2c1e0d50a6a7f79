#include "base/standard_streams.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "base/scoped_fd.h"

namespace tidemark {
namespace {

constexpr std::size_t kMaxParts = 4;

// Maximum number of times that write() refuses although poll() reported room.
constexpr int kMaxRefusals = 100;

std::optional<std::chrono::nanoseconds> stderr_patience;  // time left for its readers; nullopt: unlimited
std::uint64_t stderr_dropped = 0;                         // messages

// Reopens a pipe or terminal, because O_NONBLOCK belongs to the open file description, which other processes share,
// such as the recorded program. Does nothing for files, which never block.
ScopedFd reopen_without_waiting() {
  struct stat facts {};
  if (::fstat(STDERR_FILENO, &facts) != 0 || !(S_ISFIFO(facts.st_mode) || S_ISCHR(facts.st_mode))) return {};
  return ScopedFd(::open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

// Whether something can be written; waits while there is time left. On a shared description (a socket; no /proc)
// another process may take the room in between, and write() blocks after all.
bool wait_for_room(int fd) {
  const auto began = std::chrono::steady_clock::now();
  pollfd room{fd, POLLOUT, 0};
  const auto most = stderr_patience ? std::chrono::ceil<std::chrono::milliseconds>(*stderr_patience).count() : -1;
  const bool there = ::poll(&room, 1, static_cast<int>(most)) != 0;
  if (stderr_patience) {
    *stderr_patience =
        std::max<std::chrono::nanoseconds>(*stderr_patience - (std::chrono::steady_clock::now() - began), {});
    if (!there) ++stderr_dropped;
  }
  return there;
}

Result<void> stdout_result(bool written) {
  if (written) return {};
  return Error{fmt::format("cannot write to stdout: {}", std::strerror(errno))};
}

}  // namespace

void hold_closed_descriptors() noexcept {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The wrong way round, so that reading and writing fail as they do on a closed one. The lowest free number is `fd`.
    static_cast<void>(::open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC));
  }
}

void write_stderr(std::initializer_list<std::string_view> parts) noexcept {
  std::array<iovec, kMaxParts> left{};
  std::size_t count = 0;
  for (const std::string_view part : parts) {
    if (count < left.size()) left[count++] = {const_cast<char*>(part.data()), part.size()};
  }
  const ScopedFd own = stderr_patience ? reopen_without_waiting() : ScopedFd();
  const int fd = own ? own.get() : STDERR_FILENO;
  int refusals = 0;
  for (std::size_t first = 0; first < count;) {
    if (stderr_patience && !own && !wait_for_room(fd)) return;
    const ssize_t wrote = ::writev(fd, &left[first], static_cast<int>(count - first));
    if (wrote < 0 && errno == EAGAIN) {  // ours, or another process has set the file description to O_NONBLOCK
      if (!wait_for_room(fd) || ++refusals > kMaxRefusals) return;
    } else if (wrote == 0 || (wrote < 0 && errno != EINTR)) {
      return;
    }
    auto done = static_cast<std::size_t>(wrote < 0 ? 0 : wrote);
    while (first < count && done >= left[first].iov_len) done -= left[first++].iov_len;
    if (first == count) return;
    left[first].iov_base = static_cast<char*>(left[first].iov_base) + done;
    left[first].iov_len -= done;
  }
}

void wait_for_stderr_at_most(std::chrono::milliseconds in_all) noexcept {
  stderr_patience = in_all;
}

std::uint64_t dropped_messages() noexcept {
  return stderr_dropped;
}

void say(std::string_view message) noexcept {
  write_stderr({"tidemark: ", message, "\n"});
}

Result<void> write_stdout(std::string_view bytes) {
  return stdout_result(std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size());
}

Result<void> flush_stdout() {
  return stdout_result(std::fflush(stdout) == 0 && std::ferror(stdout) == 0);
}

}  // namespace tidemark
