// Samples to the records of samples frames, and back.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "trace/definition_decoder.h"
#include "trace/frame_encoder.h"
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
  /// Gives each record of the payload to `observe`, in order. Bounds what records may take in memory as
  /// DefinitionDecoder does. `payload` must have Frame::kPadding readable bytes behind it.
  Result<void> decode(std::span<const std::uint8_t> payload, std::uint64_t stored_bytes, const SampleObserver& observe);

  [[nodiscard]] std::uint64_t unknown_records() const { return unknown_records_; }

 private:
  std::uint64_t memory_allowed_ = DefinitionDecoder::kMemoryBytes;
  std::uint64_t memory_used_ = 0;
  std::uint64_t unknown_records_ = 0;
  std::uint32_t devices_ = 0;
};

}  // namespace tidemark
