// Files that one process writes for a long time while others may read them, replace them, or want their name.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/scoped_fd.h"

namespace tidemark {

/// Some file systems of other machines have no locks: there it is not known whether somebody else would hold one.
enum class LockState : std::uint8_t { held, taken, unknown };

/// Takes the lock that belongs to an open file (flock) without waiting; it goes when the descriptor is closed.
[[nodiscard]] LockState try_lock(const ScopedFd& fd);

/// Whether somebody else holds the lock: `held` means that nobody does. It is taken for a moment to find out, so ask
/// rarely, and not about files that are not being written.
[[nodiscard]] LockState probe_lock(const ScopedFd& fd);

/// Whether the open file is what `path` names: nobody has renamed, replaced or deleted it.
[[nodiscard]] bool has_name(const ScopedFd& fd, const std::string& path);

/// Creates `path` as a new, locked file for its owner only, open for writing. What is there already is kept, or with
/// `replace` replaced, unless somebody holds its lock: then, and where only a symbolic link is there, no descriptor is
/// returned. Whoever has a replaced file open keeps it as it is. What is no file (a device, a pipe) is opened with
/// `replace`.
[[nodiscard]] Result<ScopedFd> create_locked_file(const std::string& path, bool replace);

}  // namespace tidemark
