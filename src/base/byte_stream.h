// Bytes of a file, as they lie there or unpacked from .gz, .xz or .zst (import/unpack.h): read front to back in pieces,
// never more in memory than a piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/scoped_fd.h"

namespace tidemark {

/// One thread at a time.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  /// Puts the next bytes into `out` and returns how many: at least one, 0 only at the end. Fails when reading or
  /// unpacking does; the message names the file, and the offset in it.
  virtual Result<std::size_t> read(std::span<std::byte> out) = 0;

  /// Skips `size` existing bytes without reading them. False if that is impossible: then nothing is skipped.
  virtual bool skip(std::size_t /*size*/) { return false; }

  /// Bytes of the file used so far, packed as they are, and its size now; 0 when unknown (a pipe).
  [[nodiscard]] virtual std::uint64_t stored_offset() const = 0;
  [[nodiscard]] virtual std::uint64_t stored_size() const = 0;
  /// "gzip", "xz" or "zstd"; empty when the bytes are the file's own.
  [[nodiscard]] virtual std::string_view packing() const = 0;
  [[nodiscard]] virtual const std::string& name() const = 0;
};

/// The file's own bytes. It is read with read(), since a mapped file that shrinks would kill the reader with SIGBUS.
Result<std::unique_ptr<ByteStream>> open_byte_stream(const std::string& path);
/// The same for a file open for reading, from its current position. Messages call it `path`.
std::unique_ptr<ByteStream> make_file_stream(ScopedFd fd, const std::string& path);
/// `bytes` must outlive the stream.
std::unique_ptr<ByteStream> make_memory_stream(std::span<const std::byte> bytes, std::string name);

}  // namespace tidemark
