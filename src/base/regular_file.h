// Opens files with names from untrusted sources: regular files only.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/scoped_fd.h"

namespace tidemark {

enum class Symlinks : std::uint8_t { followed, refused };  ///< the last part of a path only

/// Opens it for reading. Only regular files are opened: opening a device may have an effect, and opening a FIFO wakes
/// its writer. The error is a clause: the reason.
[[nodiscard]] Result<ScopedFd> open_regular_file(const std::string& path, Symlinks symlinks = Symlinks::followed);

}  // namespace tidemark
