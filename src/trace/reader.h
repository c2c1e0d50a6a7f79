// Reads one recording, front to back, one batch of events at a time.
//
// Files are untrusted: nothing is used before it was checked, memory is bounded by the actual content of the file, and
// every error names the file and the offset. Not thread-safe; definitions() grows while reading.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "trace/definition_codec.h"
#include "trace/definitions.h"
#include "trace/event.h"
#include "trace/event_codec.h"
#include "trace/frames.h"
#include "trace/sample_codec.h"

namespace tidemark {

class TraceReader {
 public:
  /// Opens a file. Fails if it is not a recording, is too new, or cannot be read.
  static Result<std::unique_ptr<TraceReader>> open(const std::string& path);
  /// Reads from memory that must outlive the reader. `name` is used in error messages.
  static Result<std::unique_ptr<TraceReader>> from_memory(std::span<const std::byte> bytes, std::string name);
  /// Reads a file that may still be written: next() returns false also at the current end of the file, and continues
  /// there when it has grown. `stream` must have the file's header already.
  static Result<std::unique_ptr<TraceReader>> follow(std::unique_ptr<ByteStream> stream);
  /// The file is no longer written: an incomplete frame is torn from now on.
  void stop_waiting() { frames_->stop_waiting(); }
  /// Whether there are no more events.
  [[nodiscard]] bool finished() const { return finished_; }

  /// Replaces `batch` by the next events (a frame's worth; never empty if true is returned). False at the end. Damage
  /// in the middle ends the reading like a torn tail: it is not an error, but a Loss in definitions().losses.
  Result<bool> next(std::vector<Event>& batch);

  /// Reads one frame, for `tidemark dump`. `batch` becomes its events, empty if it has none; `observe` is called for
  /// each definition in it. False at the end. The frame's payload is valid until the next call.
  Result<bool> next_frame(Frame& frame, std::vector<Event>& batch, const RecordObserver& observe = {});

  /// Skips the events up to a later state frame at this offset of the file; definitions and samples are read. The next
  /// batch of events then replaces all earlier ones: the initial events of a recording without earlier data
  /// (docs/format.md, "Windows"). If there is no state frame at that offset, the rest is damage.
  void pass_over_until(std::uint64_t state_offset) { pass_until_ = state_offset; }
  /// Events that were passed over so far, as the frames of totals count them.
  [[nodiscard]] std::uint64_t passed_over() const { return passed_over_; }

  /// Has next() give the samples that lie between the events to `observe`, in the order of the file.
  void observe_samples(SampleObserver observe) { observe_sample_ = std::move(observe); }

  /// Everything defined so far; complete once next() has returned false. Ids in a batch are always defined.
  [[nodiscard]] const Definitions& definitions() const { return definitions_; }
  /// Forgets the marks before a time: a reader that follows a recording for weeks need not keep them all.
  void forget_marks_before(std::uint64_t time_ns);

  /// For progress: bytes consumed and in total.
  [[nodiscard]] std::uint64_t offset() const { return frames_->offset(); }
  [[nodiscard]] std::uint64_t size() const { return frames_->size(); }

  [[nodiscard]] std::uint16_t format_version() const { return frames_->format_version(); }

 private:
  explicit TraceReader(std::unique_ptr<FrameReader> frames) : frames_(std::move(frames)) {}
  static Result<std::unique_ptr<TraceReader>> open(std::unique_ptr<ByteStream> stream, FileEnd end);
  Result<void> decode(const Frame& frame, std::vector<Event>& batch, const RecordObserver& observe);
  Result<void> take_totals(const Frame& frame);
  [[nodiscard]] bool is_wanted(const Frame& frame) const;
  void finish();

  std::unique_ptr<FrameReader> frames_;
  DefinitionDecoder definition_decoder_;
  EventDecoder event_decoder_;
  SampleDecoder sample_decoder_;
  SampleObserver observe_sample_;
  Definitions definitions_;
  std::uint64_t unknown_frames_ = 0;
  std::uint64_t pass_until_ = 0;     // 0: no events are passed over
  std::uint64_t untold_events_ = 0;  // number of events read since the latest frame of totals
  std::uint64_t passed_over_ = 0;
  bool finished_ = false;
};

}  // namespace tidemark
