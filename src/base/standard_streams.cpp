#include "base/standard_streams.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace tidemark {
namespace {

constexpr std::size_t kMostParts = 4;

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
  std::array<iovec, kMostParts> left{};
  std::size_t count = 0;
  for (const std::string_view part : parts) {
    if (count < left.size()) left[count++] = {const_cast<char*>(part.data()), part.size()};
  }
  for (std::size_t first = 0; first < count;) {
    const ssize_t wrote = ::writev(STDERR_FILENO, &left[first], static_cast<int>(count - first));
    if (wrote < 0 && errno == EAGAIN) {  // another process has set the file description to O_NONBLOCK
      pollfd room{STDERR_FILENO, POLLOUT, 0};
      ::poll(&room, 1, -1);
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
