// Shared by the trace tests: writing to memory, reading it all back.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trace/reader.h"
#include "trace/sink.h"
#include "trace/writer.h"

namespace tidemark::testing {

using Bytes = std::vector<std::byte>;

/// A writer into `bytes`, which must outlive it.
inline std::unique_ptr<TraceWriter> write_to(Bytes* bytes, const ProcessInfo& process = {}) {
  auto writer = TraceWriter::create(make_memory_sink(bytes), process);
  EXPECT_TRUE(writer.ok());
  return std::move(writer).value();
}

/// Everything a reader gave.
struct Recording {
  std::string error;  ///< empty when reading went to its end
  std::vector<Event> events;
  Definitions definitions;

  /// Number of bytes, frames or records that the reader counted as missing.
  [[nodiscard]] std::uint64_t lost(Loss::Kind kind) const {
    std::uint64_t count = 0;
    for (const Loss& loss : definitions.losses) count += loss.kind == kind ? loss.count : 0;
    return count;
  }
};

inline Recording read_all(Result<std::unique_ptr<TraceReader>> reader) {
  Recording recording;
  if (!reader.ok()) {
    recording.error = reader.error().message;
    return recording;
  }
  std::vector<Event> batch;
  while (true) {
    const Result<bool> more = (*reader)->next(batch);
    if (!more.ok()) recording.error = more.error().message;
    if (!more.ok() || !*more) break;
    EXPECT_FALSE(batch.empty());
    recording.events.insert(recording.events.end(), batch.begin(), batch.end());
  }
  recording.definitions = (*reader)->definitions();
  return recording;
}

inline Recording read_all(const Bytes& bytes) {
  return read_all(TraceReader::from_memory(bytes, "memory"));
}

inline Event allocate(std::uint64_t time, std::uint64_t address, std::uint64_t size, Device device = {}) {
  Event event;
  event.time_ns = time;
  event.address = address;
  event.size = size;
  event.device = device;
  return event;
}

inline Event free_at(std::uint64_t time, std::uint64_t address, Device device = {}) {
  Event event;
  event.kind = EventKind::free;
  event.time_ns = time;
  event.address = address;
  event.device = device;
  return event;
}

/// One line an event, so that a failed comparison shows what differs.
std::string describe(const Event& event);

}  // namespace tidemark::testing
