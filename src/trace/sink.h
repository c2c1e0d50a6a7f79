// Where frames go: byte transport, apart from record encoding.
#pragma once

#include <cstddef>
#include <cstdint>
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

  /// Once append() has failed: appends what ends the file, in place of its last frames where there is no other room.
  /// Returns the size of the file then.
  virtual Result<std::uint64_t> append_last(std::span<const std::byte> bytes);
  /// Why append() failed, in a few words.
  [[nodiscard]] virtual std::string why_failed() const { return ""; }
};

/// Creates `path` as a new file for its owner only, locked (flock) until the sink is destroyed. What is there already
/// is kept, or with `overwrite` replaced by the new file, unless another sink is writing it: whoever has the old file
/// open keeps that. A symbolic link is never replaced; devices and pipes are written to as they are. Once a file has
/// been deleted, append() fails.
Result<std::unique_ptr<Sink>> open_file_sink(const std::string& path, bool overwrite);

/// The same, but null where the name is taken by what is to be kept. For those that know another name.
Result<std::unique_ptr<Sink>> open_file_sink_unless_taken(const std::string& path, bool overwrite);

/// Keeps the bytes in `*out`, which must outlive the sink. For tests and in-memory conversions.
std::unique_ptr<Sink> make_memory_sink(std::vector<std::byte>* out);

/// Drops the bytes. For measuring.
std::unique_ptr<Sink> make_null_sink();

}  // namespace tidemark
