// Output of frames: byte transport, independent of record encoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/scoped_fd.h"

namespace tidemark {

/// Takes whole frames in order. One thread at a time.
class Sink {
 public:
  virtual ~Sink() = default;
  /// Appends all bytes, or returns an error that names the destination; after an error, earlier data stays readable (a
  /// partly written frame is truncated if possible).
  virtual Result<void> append(std::span<const std::byte> bytes) = 0;

  /// After a failed append(): appends the end of the file, replacing its last frames if there is no other room. Returns
  /// the size of the file.
  virtual Result<std::uint64_t> append_last(std::span<const std::byte> bytes);
  /// Why append() failed, in a few words.
  [[nodiscard]] virtual std::string failure_reason() const { return ""; }
};

/// Writes to an open file, called `path` in error messages. Once a file has been deleted, append() fails. A file to
/// which nothing was appended is removed again.
std::unique_ptr<Sink> make_file_sink(ScopedFd fd, const std::string& path);

/// Creates `path` as create_locked_file() does; the sink owns the lock. Fails if the name is taken.
Result<std::unique_ptr<Sink>> open_file_sink(const std::string& path, bool overwrite);

/// Keeps the bytes in `*out`, which must outlive the sink. For tests and in-memory conversions.
std::unique_ptr<Sink> make_memory_sink(std::vector<std::byte>* out);

/// Drops the bytes. For measuring.
std::unique_ptr<Sink> make_null_sink();

}  // namespace tidemark
