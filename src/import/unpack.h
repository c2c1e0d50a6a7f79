// Reads compressed files.
#pragma once

#include <memory>

#include "base/byte_stream.h"

namespace tidemark {

/// The unpacked bytes of a .gz, .xz or .zst file (detected by its first bytes, not its name), or the stream itself.
/// Consecutive packed parts count as one. Memory stays below some 130 MiB for any file: a file that needs a larger
/// window is refused. Fails if the first bytes cannot be read.
Result<std::unique_ptr<ByteStream>> unpack(std::unique_ptr<ByteStream> stored);

/// Whether a file that begins so is one that unpack() unpacks.
[[nodiscard]] bool looks_packed(std::span<const std::byte> prefix);

}  // namespace tidemark
