// Payloads to frames, with header, compression and checksum, and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/byte_stream.h"
#include "base/result.h"
#include "trace/format.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace tidemark {

using ByteSpan = std::span<const std::uint8_t>;

/// Appends the file header to `out`.
void append_file_header(std::vector<std::byte>& out);

/// One per writer: keeps the compressor's memory between frames. Not thread-safe.
class FrameEncoder {
 public:
  FrameEncoder();
  ~FrameEncoder();
  FrameEncoder(const FrameEncoder&) = delete;
  FrameEncoder& operator=(const FrameEncoder&) = delete;

  /// Appends a frame with the concatenated `parts` as its payload (together at most kMaxPayloadBytes), compressed if
  /// that is smaller. The compressor starts a new block after each part, so that each is coded with separate
  /// statistics: columns of different nature in one block would cost about a bit more a value.
  void append(format::FrameType type, std::span<const ByteSpan> parts, std::vector<std::byte>& out) {
    append(type, parts, true, out);
  }
  /// The same of one part, never compressed.
  void append_plain(format::FrameType type, ByteSpan payload, std::vector<std::byte>& out) {
    append(type, {&payload, 1}, false, out);
  }

 private:
  void append(format::FrameType type, std::span<const ByteSpan> parts, bool may_compress, std::vector<std::byte>& out);

  /// Bytes written to `room`, or 0 when the payload does not become smaller than `raw_size`.
  std::size_t compress(std::span<const ByteSpan> parts, std::size_t raw_size, std::span<std::byte> room);

  struct FreeContext {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_CCtx_s, FreeContext> context_;  // null when there was no memory: frames stay uncompressed
};

/// One frame as found in the file.
struct Frame {
  std::uint64_t offset = 0;  ///< of its header
  std::uint8_t type = 0;     ///< format::FrameType, or one from a later version
  std::uint8_t version = 0;
  std::uint16_t flags = 0;
  std::uint32_t stored_length = 0;
  std::uint32_t raw_length = 0;
  bool known = false;  ///< type, version and flags are ones that this code understands
  /// Decompressed; empty unless `known`. Valid until the next frame is read. kPadding bytes of readable memory follow.
  std::span<const std::uint8_t> payload;

  static constexpr std::size_t kPadding = 16;
};

/// Place and reason of the end of reading before the end of the file.
struct Damage {
  std::uint64_t offset = 0;  ///< of the first byte not used
  std::uint64_t bytes = 0;   ///< from there to the end of the file (of a pipe: as far as it was read)
  std::string text;          ///< for people; names the offset
};

/// Meaning of an incomplete frame at the end of a file.
enum class FileEnd : std::uint8_t {
  torn,     ///< damage
  growing,  ///< the beginning of a frame that is being written
};

/// Not thread-safe.
class FrameReader {
 public:
  /// Reads the file header. Fails when the bytes are no recording, or one that needs a newer reader.
  static Result<std::unique_ptr<FrameReader>> open(std::unique_ptr<ByteStream> stream, FileEnd end = FileEnd::torn);
  ~FrameReader();
  FrameReader(const FrameReader&) = delete;
  FrameReader& operator=(const FrameReader&) = delete;

  /// False at the end of the file, or at damage, which damage() describes. If the end is growing, a later call
  /// continues with the bytes written meanwhile. With `only`, frames of other types are skipped: their payload is empty
  /// and their checksum is not compared.
  Result<bool> next(Frame& frame, std::optional<format::FrameType> only = std::nullopt) {
    return next(frame, [&only](const Frame& of) { return !only || of.type == static_cast<std::uint8_t>(*only); });
  }
  /// The same; skips frames for which `wanted(frame)`, called after the header was read, is false.
  Result<bool> next(Frame& frame, const std::function<bool(const Frame&)>& wanted);

  /// Ends reading at `frame`, which has invalid content.
  void reject(const Frame& frame, const std::string& why);

  /// Treats an incomplete end as torn from now on.
  void stop_waiting() { end_ = FileEnd::torn; }
  /// Whether there may be more after next() has returned false.
  [[nodiscard]] bool waits() const { return end_ == FileEnd::growing && !damage_; }

  [[nodiscard]] const std::optional<Damage>& damage() const { return damage_; }
  [[nodiscard]] std::uint16_t format_version() const { return format_version_; }
  [[nodiscard]] std::uint64_t offset() const { return offset_; }               ///< bytes taken so far
  [[nodiscard]] std::uint64_t size() const { return stream_->stored_size(); }  ///< of the file; 0 when unknown (a pipe)

 private:
  FrameReader(std::unique_ptr<ByteStream> stream, FileEnd end);
  /// The first `size` bytes from the beginning of the frame, fewer only at the end; valid until the next call. Memory
  /// grows with the bytes in the file, not with `size`.
  Result<std::span<const std::byte>> take(std::size_t size);
  bool unpack(Frame& frame, std::span<const std::byte> stored);

  struct FreeContext {
    void operator()(ZSTD_DCtx_s* context) const;
  };
  std::unique_ptr<ByteStream> stream_;
  std::unique_ptr<ZSTD_DCtx_s, FreeContext> context_;
  std::vector<std::byte> stored_;      // the frame as in the file; only grows
  std::size_t have_ = 0;               // number of bytes available
  std::vector<std::uint8_t> payload_;  // decompressed; only grows
  std::uint64_t offset_ = 0;
  std::optional<Damage> damage_;
  std::uint16_t format_version_ = 0;
  FileEnd end_;
};

}  // namespace tidemark
