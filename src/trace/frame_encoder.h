// Turns payloads into frames: header, compression, checksum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trace/format.h"

struct ZSTD_CCtx_s;

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

  /// Appends a frame whose payload is `parts` one after the other (together at most kMaxPayloadBytes), compressed when
  /// that makes it smaller. The compressor starts a new block after each part, so that each is coded with statistics of
  /// its own: columns of different nature in one block would cost about a bit more a value.
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

}  // namespace tidemark
