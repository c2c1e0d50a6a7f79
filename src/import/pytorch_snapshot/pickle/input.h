// A window over the bytes of a stream, so that the opcodes can be read in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/byte_stream.h"

namespace tidemark::pytorch {

/// Not thread-safe.
class PickleInput {
 public:
  /// This number of bytes after end() is readable, with any content.
  static constexpr std::size_t kPadding = 16;

  /// `progress` is called now and then with (bytes done, bytes in all) of the file; may be empty.
  PickleInput(ByteStream& stream, std::function<void(std::uint64_t, std::uint64_t)> progress)
      : stream_(stream), progress_(std::move(progress)) {}

  [[nodiscard]] const std::uint8_t* begin() const { return bytes_.data() + begin_; }
  [[nodiscard]] const std::uint8_t* end() const { return bytes_.data() + end_; }

  /// Moves the window on, so that it begins with `at` (between begin() and end()) and holds at least `size` bytes,
  /// fewer only at the end of the stream or after an error. Memory grows with the bytes that are really there.
  void advance(const std::uint8_t* at, std::size_t size);

  /// Offset of a byte in the window from the beginning of the stream.
  [[nodiscard]] std::uint64_t offset_of(const std::uint8_t* at) const {
    return offset_ + static_cast<std::uint64_t>(at - begin());
  }
  /// How much of the file was read, 0 to 1; 0 when its size is unknown.
  [[nodiscard]] double share_read() const { return share_read_; }
  /// Why reading stopped before the end, with the file's name; empty when it did not.
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  ByteStream& stream_;
  std::function<void(std::uint64_t, std::uint64_t)> progress_;
  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(kPadding);
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t offset_ = 0;  // of begin_
  double share_read_ = 0;
  bool at_end_ = false;
  std::string failure_;
};

}  // namespace tidemark::pytorch
