// Where frames go: byte transport, apart from record encoding.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tidemark {

/// Takes whole frames in order. One thread at a time.
class Sink {
 public:
  virtual ~Sink() = default;
  /// Appends all bytes, or returns an error that names the destination; after an error what was appended before stays
  /// readable (a partly written frame is cut off again where possible).
  virtual Result<void> append(std::span<const std::byte> bytes) = 0;
};

/// Creates `path` with owner-only permissions. Refuses to replace an existing file unless `overwrite`.
Result<std::unique_ptr<Sink>> open_file_sink(const std::string& path, bool overwrite);

/// Keeps the bytes in `*out`, which must outlive the sink. For tests and in-memory conversions.
std::unique_ptr<Sink> make_memory_sink(std::vector<std::byte>* out);

/// Drops the bytes. For measuring.
std::unique_ptr<Sink> make_null_sink();

}  // namespace tidemark
