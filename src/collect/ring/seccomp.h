// Seccomp filters of this process: the recorder, or a recorded process that may have more of them.
#pragma once

#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdint>

namespace tidemark::ring {

/// The number of filters on the calling thread. Kernels before 5.10 do not count them: 1 if there are any. Makes only
/// the system calls with which every program reads a file, because a filter may end the process for others. May change
/// errno.
inline std::uint32_t seccomp_filters() noexcept {
  char status[4096];
  const int file = ::open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
  const ssize_t size = file >= 0 ? ::read(file, status, sizeof(status) - 1) : -1;
  if (file >= 0) ::close(file);
  if (size <= 0) return ::prctl(PR_GET_SECCOMP) > 0 ? 1 : 0;  // no /proc
  status[size] = '\0';
  constexpr char kFilters[] = "\nSeccomp_filters:\t";
  constexpr char kMode[] = "\nSeccomp:\t";
  if (const char* found = ::strstr(status, kFilters); found != nullptr) {
    return static_cast<std::uint32_t>(::strtoul(found + sizeof(kFilters) - 1, nullptr, 10));
  }
  const char* mode = ::strstr(status, kMode);
  return mode != nullptr && mode[sizeof(kMode) - 1] != '0' ? 1 : 0;
}

}  // namespace tidemark::ring
