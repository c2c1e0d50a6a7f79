// Fuzz target of joining the segments of a flight recorder into one recording: for any bytes, joining terminates, and
// its output is a recording with all the events that it counts. The input is two segments, one after the other, once
// unchanged and once with corrected checksums.
#include <cstdint>
#include <span>
#include <vector>

#include "fuzz/repair_checksums.h"
#include "fuzz/require.h"
#include "trace/reader.h"
#include "trace/segment_joiner.h"
#include "trace/writer.h"

namespace {

using namespace tidemark;
using tidemark::testing::require;

void join(std::span<const std::byte> segment) {
  std::vector<std::byte> bytes;
  auto writer = TraceWriter::create(make_memory_sink(&bytes), {});
  require(writer.ok(), "memory can be written");
  SegmentJoiner joiner(std::move(*writer));
  std::vector<std::unique_ptr<TraceReader>> readers;
  for (int segment_number = 0; segment_number < 2; ++segment_number) {
    auto reader = TraceReader::from_memory(segment, "input");
    if (!reader.ok()) return;
    readers.push_back(std::move(*reader));
    joiner.begin(*readers.back(), nullptr);
    for (auto more = joiner.take_frame(); *more; more = joiner.take_frame()) {
      require(more.ok(), "memory can be read and written");
    }
    joiner.end_segment();
  }
  const auto joined = joiner.finish();
  require(joined.ok(), "memory can be written");
  const auto reader = TraceReader::from_memory(bytes, "joined");
  require(reader.ok(), "joined segments are a recording");
  std::uint64_t read = 0;
  std::vector<Event> batch;
  for (auto more = (*reader)->next(batch); more.ok() && *more; more = (*reader)->next(batch)) read += batch.size();
  require(read >= joined->event_count, "every event that is counted is there");
  require(joiner.end().has_value() == (*reader)->definitions().end.has_value(), "it ends as its last segment does");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  std::vector<std::byte> bytes(input.begin(), input.end());
  join(bytes);
  tidemark::testing::repair_checksums(bytes);
  join(bytes);
  return 0;
}
