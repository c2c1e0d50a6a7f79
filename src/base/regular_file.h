// Files that somebody else names: what is opened of them are regular files only.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/scoped_fd.h"

namespace tidemark {

enum class Symlinks : std::uint8_t { followed, refused };  ///< the last part of a path only

/// Opens it for reading. What is no regular file is not opened: to open a device may do something, to open a FIFO lets
/// go on who waits for a reader. The error is a clause: why not.
[[nodiscard]] Result<ScopedFd> open_regular_file(const std::string& path, Symlinks symlinks = Symlinks::followed);

}  // namespace tidemark
