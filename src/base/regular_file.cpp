#include "base/regular_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace tidemark {
namespace {

constexpr int kReading = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

bool is_regular(int fd) {
  struct stat facts {};
  return ::fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode);
}

}  // namespace

Result<ScopedFd> open_regular_file(const std::string& path, Symlinks symlinks) {
  const auto failed = [] { return Error{fmt::format("cannot be opened: {}", std::strerror(errno))}; };
  const int links = symlinks == Symlinks::refused ? O_NOFOLLOW : 0;
  const Error other{"not a regular file"};
  const ScopedFd found(::open(path.c_str(), O_PATH | O_CLOEXEC | links));  // only locates the file
  if (!found) return failed();
  if (!is_regular(found.get())) return other;
  ScopedFd fd(::open(fmt::format("/proc/self/fd/{}", found.get()).c_str(), kReading));
  if (!fd && errno == ENOENT) fd.reset(::open(path.c_str(), kReading | links));  // there is no /proc
  if (!fd) return failed();
  if (!is_regular(fd.get())) return other;
  return fd;
}

}  // namespace tidemark
