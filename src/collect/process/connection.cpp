#include "collect/process/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "collect/ring/layout.h"
#include "collect/ring/ranks.h"

namespace tidemark::process {
namespace {

sockaddr_un recorder_address;  // empty sun_path = not configured

int connect_to_recorder() noexcept {
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&recorder_address), sizeof(recorder_address)) == 0) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

bool send_memory(int socket, int memory) noexcept {
  ring::Hello hello = {ring::kMagic, ring::kVersion, 0};
  iovec data = {&hello, sizeof(hello)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  ::memcpy(CMSG_DATA(header), &memory, sizeof(int));
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(hello));
}

// A memfd counts as a file: creating one larger than `ulimit -f` allows raises SIGXFSZ, which ends most programs.
bool file_size_limit_allows_memory() noexcept {
  rlimit limit = {};
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= sizeof(ring::Shared);
}

ring::Shared* fail(const char* why) noexcept {
  say(why);
  report_unrecorded(Unrecorded::could_not_start);
  return nullptr;
}

// A sealed memfd: neither its owner nor the recorder can change its size.
ring::Shared* make_memory(ring::Clock clock, ring::Shared* place, int* fd) noexcept {
  *fd = ::memfd_create("tidemark", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (*fd < 0) return nullptr;
  void* mapped = MAP_FAILED;
  if (::ftruncate(*fd, sizeof(ring::Shared)) == 0 &&
      ::fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    void* const address = place != nullptr ? place : reinterpret_cast<void*>(kRingAddress);
    mapped = ::mmap(address, sizeof(ring::Shared), PROT_READ | PROT_WRITE,
                    MAP_SHARED | (place != nullptr ? MAP_FIXED : 0), *fd, 0);
  }
  if (mapped == MAP_FAILED) {
    ::close(*fd);
    return nullptr;
  }
  auto* shared = static_cast<ring::Shared*>(mapped);
  ring::Control& control = shared->control;
  control.magic = ring::kMagic;
  control.version = ring::kVersion;
  control.pid = static_cast<std::uint32_t>(::getpid());
  control.parent_pid = static_cast<std::uint32_t>(::getppid());
  control.clock = clock;
  control.start_ticks = ticks(clock);
  const ring::Ranks ranks = ring::ranks_now();
  control.rank = ranks.rank;
  control.local_rank = ranks.local_rank;
  control.world_size = ranks.world_size;
  for (auto& word : shared->free_chunks) word.store(~std::uint64_t{0}, std::memory_order_relaxed);
  return shared;
}

}  // namespace

void configure_connection(const char* path) noexcept {
  recorder_address.sun_family = AF_UNIX;
  recorder_address.sun_path[0] = '\0';
  if (path != nullptr && ::strlen(path) < sizeof(recorder_address.sun_path)) {
    ::strcpy(recorder_address.sun_path, path);
  }
}

bool connection_configured() noexcept {
  return recorder_address.sun_path[0] != '\0';
}

const char* recorder_socket() noexcept {
  return recorder_address.sun_path;
}

ring::Shared* open_connection(ring::Clock clock, ring::Shared* place) noexcept {
  if (!file_size_limit_allows_memory()) {
    return fail(
        "recording is off: the file size limit (ulimit -f) leaves no room for shared memory; the program continues");
  }
  int memory = -1;
  ring::Shared* shared = make_memory(clock, place, &memory);
  if (shared == nullptr) return fail("recording is off: shared memory is unavailable; the program continues");
  const int socket = connect_to_recorder();
  const bool sent = socket >= 0 && send_memory(socket, memory);
  if (socket >= 0) ::close(socket);
  ::close(memory);
  if (sent) return shared;
  if (place == nullptr) {
    ::munmap(shared, sizeof(ring::Shared));
  } else {
    close_connection(shared);
  }
  return fail("recording is off: the recorder cannot be reached; the program continues");
}

void close_connection(ring::Shared* shared) noexcept {
  static_cast<void>(::mmap(shared, sizeof(ring::Shared), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0));
}

bool recorder_alive() noexcept {
  const int fd = connect_to_recorder();
  if (fd >= 0) ::close(fd);
  return fd >= 0 || errno == EAGAIN;  // EAGAIN: its backlog is full, so it exists
}

void report_unrecorded(Unrecorded reason) noexcept {
  char path[sizeof(recorder_address.sun_path) + 8];
  const int length = ::snprintf(path, sizeof(path), "%s.seen", recorder_address.sun_path);
  if (length <= 0) return;
  const int fd = ::open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return;
  const ssize_t written = ::write(fd, &reason, 1);
  (void)written;
  ::close(fd);
}

void say(const char* message) noexcept {
  char line[256];
  const int length = ::snprintf(line, sizeof(line), "tidemark: %s (pid %d)\n", message, static_cast<int>(::getpid()));
  if (length <= 0) return;
  // If stderr is a closed pipe, SIGPIPE would end a program that has written nothing itself.
  sigset_t broken_pipe;
  sigset_t before;
  sigset_t pending;
  ::sigemptyset(&broken_pipe);
  ::sigaddset(&broken_pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
  ::sigpending(&pending);
  const ssize_t written = ::write(STDERR_FILENO, line, static_cast<std::size_t>(length));
  const timespec now = {};
  if (written < 0 && ::sigismember(&pending, SIGPIPE) == 0) ::sigtimedwait(&broken_pipe, nullptr, &now);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace tidemark::process
