// Samples to the records of samples frames, and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "trace/definition_codec.h"
#include "trace/frames.h"
#include "trace/host_sample.h"
#include "trace/sample.h"

namespace tidemark {

/// Not thread-safe.
class SampleEncoder {
 public:
  void add(const SampleRecord& record);
  [[nodiscard]] bool empty() const { return pending_.empty(); }
  /// At most this many bytes come from append_frames(), headers included.
  [[nodiscard]] std::size_t pending_bytes() const;
  /// Appends all that is new as frames to `out`.
  void append_frames(FrameEncoder& frames, std::vector<std::byte>& out);

 private:
  std::vector<std::vector<std::uint8_t>> pending_;  // one payload a frame
  std::vector<std::uint8_t> scratch_;
};

using SampleObserver = std::function<void(const SampleRecord&)>;

/// Not thread-safe.
class SampleDecoder {
 public:
  /// Calls `observe` with each record of the payload, in order. Bounds the memory of records as DefinitionDecoder does.
  /// `payload` must have Frame::kPadding readable bytes after it.
  Result<void> decode(std::span<const std::uint8_t> payload, std::uint64_t stored_bytes, const SampleObserver& observe);

  [[nodiscard]] std::uint64_t unknown_records() const { return unknown_records_; }

 private:
  std::uint64_t memory_allowed_ = DefinitionDecoder::kMemoryBytes;
  std::uint64_t memory_used_ = 0;
  std::uint64_t unknown_records_ = 0;
  std::uint32_t devices_ = 0;
};

/// Not thread-safe. Damaged or unknown records are not counted here: TraceReader reports them.
class SampleReader {
 public:
  static Result<SampleReader> open(const std::string& path);

  /// Replaces `batch` by the records of the next frame with samples. False at the end, or if the file is damaged.
  Result<bool> next(std::vector<SampleRecord>& batch);

  /// Bytes consumed.
  [[nodiscard]] std::uint64_t offset() const { return frames_->offset(); }

 private:
  explicit SampleReader(std::unique_ptr<FrameReader> frames) : frames_(std::move(frames)) {}

  std::unique_ptr<FrameReader> frames_;
  SampleDecoder decoder_;
};

}  // namespace tidemark
