// Files that one process writes for a long time while others may read them, replace them, or want their name.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/scoped_fd.h"

namespace tidemark {

/// unknown: some network file systems have no locks, so another owner would not be detected.
enum class LockState : std::uint8_t { held, taken, unknown };

/// Takes the lock of an open file (flock) without waiting; closing the descriptor releases it.
[[nodiscard]] LockState try_lock(const ScopedFd& fd);

/// Whether another process holds the lock: `held` means that none does. Takes the lock briefly, so call it rarely, and
/// not for files that are not being written.
[[nodiscard]] LockState probe_lock(const ScopedFd& fd);

/// Whether the open file is still at `path`: it was not renamed, replaced or deleted.
[[nodiscard]] bool has_name(const ScopedFd& fd, const std::string& path);

/// Creates `path` as a new, locked file for its owner only, open for writing. An existing file is kept, or with
/// `replace` replaced, unless another process holds its lock: then, and if only a symbolic link exists, no descriptor
/// is returned. Processes that have a replaced file open keep it unchanged. Special files (a device, a pipe) are opened
/// with `replace`.
[[nodiscard]] Result<ScopedFd> create_locked_file(const std::string& path, bool replace);

}  // namespace tidemark
