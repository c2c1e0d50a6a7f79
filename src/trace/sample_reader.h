// Reads only the samples of a recording: frames of events and definitions are checked, but not unpacked.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "trace/frame_reader.h"
#include "trace/sample_codec.h"

namespace tidemark {

/// Not thread-safe. What is damaged or unknown is not counted here: TraceReader says that.
class SampleReader {
 public:
  static Result<SampleReader> open(const std::string& path);

  /// Replaces `batch` by the records of the next frame that has some. False at the end, or where the file is damaged.
  Result<bool> next(std::vector<SampleRecord>& batch);

  /// Bytes consumed.
  [[nodiscard]] std::uint64_t offset() const { return frames_->offset(); }

 private:
  explicit SampleReader(std::unique_ptr<FrameReader> frames) : frames_(std::move(frames)) {}

  std::unique_ptr<FrameReader> frames_;
  SampleDecoder decoder_;
};

}  // namespace tidemark
