// The segments of a window as one recording.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "trace/sink.h"
#include "trace/window_writer.h"

namespace tidemark {

struct JoinedRecording {
  std::uint64_t event_count = 0;  ///< without what the recording begins with
  std::uint64_t oom_count = 0;    ///< of these, requests that failed
  std::uint64_t bytes = 0;
  std::uint64_t end_ns = 0;  ///< when what the segments hold ended
};

/// Writes what complete segments, which follow each other and of which there is one at least, hold: the first with what
/// it begins with, the others without. Memory grows with definitions and live blocks, not with events. An error is that
/// of a file which cannot be read or written, and names it.
Result<JoinedRecording> join_segments(const SegmentFiles& segments, std::unique_ptr<Sink> sink);

}  // namespace tidemark
