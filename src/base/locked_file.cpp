#include "base/locked_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace tidemark {
namespace {

// Other processes may interfere between any two steps; after this number of failures there is no point in retrying.
constexpr int kAttempts = 100;

// Makes room for a new file at `path`: true when it may be free now, false when it is taken.
Result<bool> make_room(const std::string& path) {
  // For writing, because network file systems (NFS) lock nothing else.
  const ScopedFd old(::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!old && (errno == ENOENT || errno == ELOOP)) return true;  // replaced meanwhile
  if (old && try_lock(old) == LockState::taken) return false;
  // The owner of a lock whose file still has its name may remove the name: others see either state.
  if (old && (!has_name(old, path) || ::unlink(path.c_str()) == 0 || errno == ENOENT)) return true;
  return Error{fmt::format("{}: cannot be replaced: {}", path, std::strerror(errno))};
}

}  // namespace

bool has_name(const ScopedFd& fd, const std::string& path) {
  struct stat open {};
  struct stat named {};
  return ::fstat(fd.get(), &open) == 0 && ::lstat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

LockState try_lock(const ScopedFd& fd) {
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return LockState::held;
  return errno == EWOULDBLOCK ? LockState::taken : LockState::unknown;
}

// Shared, since file systems of other machines (NFS) lock a file that is open for reading no other way.
LockState probe_lock(const ScopedFd& fd) {
  if (::flock(fd.get(), LOCK_SH | LOCK_NB) != 0) return errno == EWOULDBLOCK ? LockState::taken : LockState::unknown;
  ::flock(fd.get(), LOCK_UN);
  return LockState::held;
}

Result<ScopedFd> create_locked_file(const std::string& path, bool replace) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    // O_EXCL follows no symbolic link. Owner only, whatever the umask.
    ScopedFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (fd) return try_lock(fd) != LockState::taken && has_name(fd, path) ? std::move(fd) : ScopedFd();
    if (errno != EEXIST) return Error{fmt::format("{}: cannot be created: {}", path, std::strerror(errno))};
    struct stat there {};
    if (!replace || ::lstat(path.c_str(), &there) != 0) {
      if (!replace || errno != ENOENT) return ScopedFd();
      continue;
    }
    if (S_ISREG(there.st_mode)) {
      auto room = make_room(path);
      if (!room) return room.error();
      if (!*room) return ScopedFd();
      continue;
    }
    if (::stat(path.c_str(), &there) != 0 || S_ISREG(there.st_mode)) return ScopedFd();  // a symbolic link
    ScopedFd device(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (device) return device;
    return Error{fmt::format("{}: cannot be written: {}", path, std::strerror(errno))};
  }
  return ScopedFd();
}

}  // namespace tidemark
