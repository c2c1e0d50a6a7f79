// Writes one recording: interns what events refer to, packs events into frames, hands frames to a sink.
//
// One thread at a time. The writer owns its sink. A write error is returned once by the call that met it; from then on
// every call but finish_after_error() does nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "trace/definition_encoder.h"
#include "trace/definitions.h"
#include "trace/event.h"
#include "trace/event_encoder.h"
#include "trace/frame_encoder.h"
#include "trace/sample_codec.h"
#include "trace/sink.h"

namespace tidemark {

class TraceWriter {
 public:
  /// Writes the file header and the process record at once, so that even a recording without events reads.
  static Result<std::unique_ptr<TraceWriter>> create(std::unique_ptr<Sink> sink, const ProcessInfo& process);

  // Interning: the same argument gives the same id, and costs bytes in the file only the first time.
  StringId string(std::string_view text);
  LocationId location(const Location& location);
  StackId stack(StackId parent, LocationId location);
  ModuleId module(const ModuleInfo& module);
  AutogradNodeId autograd_node(const AutogradNode& node);

  /// A new thread, even when the same tid was seen before (tids are reused).
  ThreadId thread(const ThreadInfo& thread);

  /// A new module object, even when the address was seen before.
  NnModuleId nn_module(const NnModule& module);
  /// What a module is called, in place of what it was called before.
  void nn_module_name(const NnModuleName& name);
  void tensor(const ModelTensor& tensor);

  /// Later knowledge about the process (torch version, Python version): replaces the earlier record for readers.
  void process(const ProcessInfo& process);

  /// Appends an event. Events come in time order; a step back of the clock is allowed and kept. For allocate and free
  /// the writer assigns `slot` itself (the field is ignored), pairs a free with its allocation by (device, address),
  /// and ignores `size` of a free. An allocation at an address still alive first frees the old block (the reader sees
  /// a free event at the same time).
  Result<void> event(const Event& event);

  /// Name and thread must be this writer's own.
  void mark(const Mark& mark);

  /// Appends a sample. A SampledDevice gets the next id, from 0; it comes before the samples that refer to it.
  void sample(const SampleRecord& record);

  /// Adds to what is missing.
  void loss(const Loss& loss);

  /// Puts everything so far into a frame of its own and hands it to the sink. That happens by itself every 16,384
  /// events; frames of 4,096 cost about a third more bytes an event, frames of 256 twice as many: once a second is
  /// often enough.
  Result<void> flush();

  /// From now on flush() leaves out what would make the file larger than this. Nothing but losses and the end should
  /// follow what was left out.
  void leave_out_above(std::uint64_t bytes) { most_bytes_ = bytes; }
  [[nodiscard]] bool left_out() const { return left_out_; }

  /// Last frame; nothing may be written afterwards.
  Result<void> finish(const EndInfo& end);

  /// After a write error: a last frame that says so, where there is room for it or can be made.
  Result<void> finish_after_error(const EndInfo& end);

  /// Bytes handed to the sink so far, and a bound on what flush() would add now. For --max-size.
  [[nodiscard]] std::uint64_t bytes_written() const { return bytes_written_; }
  [[nodiscard]] std::uint64_t bytes_pending() const;

 private:
  explicit TraceWriter(std::unique_ptr<Sink> sink) : sink_(std::move(sink)) {}

  std::unique_ptr<Sink> sink_;
  FrameEncoder frames_;
  DefinitionEncoder definitions_;
  EventEncoder events_;
  SampleEncoder samples_;
  std::vector<std::byte> out_;
  std::uint64_t bytes_written_ = 0;
  std::uint64_t most_bytes_ = ~std::uint64_t{0};
  bool left_out_ = false;
  bool closed_ = false;  // finished, or a write failed
};

}  // namespace tidemark
