// Writes one recording: interns what events refer to, packs events into frames, hands frames to a sink.
//
// One thread at a time. The writer owns its sink. A write error is returned once by the call that met it; from then on
// every call does nothing and the sink is not touched again.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "trace/definitions.h"
#include "trace/event.h"
#include "trace/sample.h"
#include "trace/sink.h"

namespace tidemark {

class TraceWriter {
 public:
  /// Writes the file header and the process record at once, so that even a recording without events reads.
  static Result<std::unique_ptr<TraceWriter>> create(std::unique_ptr<Sink> sink, const ProcessInfo& process);
  virtual ~TraceWriter() = default;

  // Interning: the same argument gives the same id, and costs bytes in the file only the first time.
  virtual StringId string(std::string_view text) = 0;
  virtual LocationId location(const Location& location) = 0;
  virtual StackId stack(StackId parent, LocationId location) = 0;
  virtual ModuleId module(const ModuleInfo& module) = 0;

  /// A new thread, even when the same tid was seen before (tids are reused).
  virtual ThreadId thread(const ThreadInfo& thread) = 0;

  /// Later knowledge about the process (torch version, Python version): replaces the earlier record for readers.
  virtual void process(const ProcessInfo& process) = 0;

  /// Appends an event. Events come in time order; a step back of the clock is allowed and kept. For allocate and free
  /// the writer assigns `slot` itself (the field is ignored), pairs a free with its allocation by (device, address),
  /// and ignores `size` of a free. An allocation at an address still alive first frees the old block (the reader sees
  /// a free event at the same time).
  virtual Result<void> event(const Event& event) = 0;

  /// Name and thread must be this writer's own.
  virtual void mark(const Mark& mark) = 0;

  /// Appends a sample. A SampledDevice gets the next id, from 0; it comes before the samples that refer to it.
  virtual void sample(const SampleRecord& record) = 0;

  /// Adds to what is missing.
  virtual void loss(const Loss& loss) = 0;

  /// Puts everything so far into a frame of its own and hands it to the sink. That happens by itself every 16,384
  /// events; frames of 4,096 cost about a third more bytes an event, frames of 256 twice as many: once a second is
  /// often enough.
  virtual Result<void> flush() = 0;

  /// Last frame; nothing may be written afterwards.
  virtual Result<void> finish(const EndInfo& end) = 0;

  /// Bytes handed to the sink so far, and a bound on what flush() would add now. For --max-size.
  [[nodiscard]] virtual std::uint64_t bytes_written() const = 0;
  [[nodiscard]] virtual std::uint64_t bytes_pending() const = 0;
};

}  // namespace tidemark
