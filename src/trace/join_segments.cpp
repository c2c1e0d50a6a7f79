#include "trace/join_segments.h"

#include <utility>

#include "trace/reader.h"
#include "trace/writer.h"

namespace tidemark {

Result<JoinedRecording> join_segments(const SegmentFiles& segments, std::unique_ptr<Sink> sink) {
  auto writer = TraceWriter::create(std::move(sink), {});
  if (!writer) return writer.error();
  SegmentJoiner joiner(std::move(*writer));
  for (const auto& segment : segments) {
    auto reader = TraceReader::open(segment->path());
    if (!reader) return reader.error();
    joiner.begin(**reader, segment.get());
    for (;;) {
      const auto more = joiner.take_frame();
      if (!more) return more.error();
      if (!*more) break;
    }
    joiner.end_segment();
  }
  return joiner.finish();
}

}  // namespace tidemark
