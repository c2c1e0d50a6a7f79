// The segments of a window as one recording.
#pragma once

#include <memory>

#include "base/result.h"
#include "trace/segment_joiner.h"
#include "trace/sink.h"
#include "trace/window_writer.h"

namespace tidemark {

/// Writes what complete segments, which follow each other and of which there is one at least, hold: the first with what
/// it begins with, the others without. Memory grows with definitions and live blocks, not with events. An error is that
/// of a file which cannot be read or written, and names it.
Result<JoinedRecording> join_segments(const SegmentFiles& segments, std::unique_ptr<Sink> sink);

}  // namespace tidemark
