// Interface for writing a recording: into one file (TraceWriter), or into the files of its last part (WindowWriter).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "trace/definitions.h"
#include "trace/event.h"
#include "trace/sample.h"

namespace tidemark {

/// Not thread-safe. The call in which a write error occurs returns it; from then on every call except
/// finish_after_error() does nothing.
class RecordingWriter {
 public:
  virtual ~RecordingWriter() = default;

  // Interning: the same argument gives the same id, and costs bytes in a file only the first time.
  virtual StringId string(std::string_view text) = 0;
  virtual LocationId location(const Location& location) = 0;
  virtual StackId stack(StackId parent, LocationId location) = 0;
  virtual ModuleId module(const ModuleInfo& module) = 0;
  virtual AutogradNodeId autograd_node(const AutogradNode& node) = 0;

  /// A new thread, even when the same tid was seen before (tids are reused).
  virtual ThreadId thread(const ThreadInfo& thread) = 0;

  /// A new module object, even when the address was seen before.
  virtual NnModuleId nn_module(const NnModule& module) = 0;
  /// Sets the name of a module, replacing its earlier name.
  virtual void nn_module_name(const NnModuleName& name) = 0;
  virtual void tensor(const ModelTensor& tensor) = 0;

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

  /// Adds a record of missing data.
  virtual void loss(const Loss& loss) = 0;

  /// Puts everything so far into a separate frame and passes it to the sink. Called automatically every 16,384 events;
  /// frames of 4,096 cost about a third more bytes an event, frames of 256 twice as many: once a second is often
  /// enough.
  virtual Result<void> flush() = 0;

  /// Writes the last frame; nothing may be written afterwards.
  virtual Result<void> finish(const EndInfo& end) = 0;

  /// After a write error: writes a last frame that records it, if there is or can be made room for it.
  virtual Result<void> finish_after_error(const EndInfo& end) = 0;

  /// From now on flush() drops data that would make the file larger than this. Only losses and the end should follow
  /// dropped data.
  virtual void leave_out_above(std::uint64_t bytes) = 0;
  [[nodiscard]] virtual bool left_out() const = 0;

  /// Bytes passed to the sink so far, and a bound on the size of the next flush(). For --max-size.
  [[nodiscard]] virtual std::uint64_t bytes_written() const = 0;
  [[nodiscard]] virtual std::uint64_t bytes_pending() const = 0;
};

}  // namespace tidemark
