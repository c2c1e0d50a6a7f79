// Where a reader's bytes come from: a file, read with read() since a mapped file that shrinks would kill the reader
// with SIGBUS, or memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace tidemark {

/// One thread at a time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// The next `size` bytes, fewer only at the end; valid until the next call. Memory grows with the bytes that are
  /// really there, not with `size`. Fails when reading does (the message names the file).
  virtual Result<std::span<const std::byte>> take(std::size_t size) = 0;

  [[nodiscard]] virtual std::uint64_t offset() const = 0;  ///< bytes taken so far
  [[nodiscard]] virtual std::uint64_t size() const = 0;    ///< at opening; 0 when unknown (a pipe)
  [[nodiscard]] virtual const std::string& name() const = 0;
};

Result<std::unique_ptr<ByteSource>> open_file_source(const std::string& path);
/// `bytes` must outlive the source.
std::unique_ptr<ByteSource> make_memory_source(std::span<const std::byte> bytes, std::string name);

}  // namespace tidemark
