// The reader of recordings. Most code wants TraceReader (reader.h); this shows the frames too, for `tidemark dump`.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "trace/definition_decoder.h"
#include "trace/event_decoder.h"
#include "trace/frame_reader.h"
#include "trace/reader.h"

namespace tidemark {

/// One thread at a time.
class RecordingReader final : public TraceReader {
 public:
  static Result<std::unique_ptr<RecordingReader>> open(std::unique_ptr<ByteSource> source);

  /// Reads one frame. `batch` becomes its events, empty when it has none; `observe` is called for each definition in
  /// it. False at the end. The frame's payload is valid until the next call.
  Result<bool> next_frame(Frame& frame, std::vector<Event>& batch, const RecordObserver& observe = {});

  Result<bool> next(std::vector<Event>& batch) override;
  void observe_samples(SampleObserver observe) override { observe_sample_ = std::move(observe); }
  [[nodiscard]] const Definitions& definitions() const override { return definitions_; }
  [[nodiscard]] std::uint64_t offset() const override { return frames_->source().offset(); }
  [[nodiscard]] std::uint64_t size() const override { return frames_->source().size(); }

  [[nodiscard]] std::uint16_t format_version() const { return frames_->format_version(); }

 private:
  explicit RecordingReader(std::unique_ptr<FrameReader> frames) : frames_(std::move(frames)) {}
  Result<void> decode(const Frame& frame, std::vector<Event>& batch, const RecordObserver& observe);
  void finish();

  std::unique_ptr<FrameReader> frames_;
  DefinitionDecoder definition_decoder_;
  EventDecoder event_decoder_;
  SampleDecoder sample_decoder_;
  SampleObserver observe_sample_;
  Definitions definitions_;
  std::uint64_t unknown_frames_ = 0;
  bool finished_ = false;
};

}  // namespace tidemark
