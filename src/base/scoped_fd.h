// A file descriptor that is closed by its owner's destructor.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace tidemark {

/// Owns one file descriptor, or none. Move-only, not thread-safe. Header-only and without exceptions.
class ScopedFd {
 public:
  ScopedFd() = default;
  /// Takes over `fd` as returned by system calls: negative means none.
  explicit ScopedFd(int fd) : fd_(fd) {}
  ScopedFd(ScopedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ScopedFd& operator=(ScopedFd&& other) noexcept {
    reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ScopedFd(const ScopedFd&) = delete;
  ScopedFd& operator=(const ScopedFd&) = delete;
  ~ScopedFd() { reset(); }

  explicit operator bool() const { return fd_ >= 0; }
  /// For system calls; stays owned. Negative if there is none.
  [[nodiscard]] int get() const { return fd_; }
  /// Hands the descriptor over to the caller, who closes it.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  /// Closes the descriptor, if there is one, and takes over `fd`. Leaves errno as it is.
  void reset(int fd = -1) {
    const int old = std::exchange(fd_, fd);
    if (old < 0) return;
    const int error = errno;
    ::close(old);
    errno = error;
  }

 private:
  int fd_ = -1;
};

}  // namespace tidemark
