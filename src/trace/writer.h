// Writes one recording: interns values that events refer to, packs events into frames, passes frames to a sink.
//
// The writer owns its sink.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "trace/definition_codec.h"
#include "trace/definitions.h"
#include "trace/event.h"
#include "trace/event_codec.h"
#include "trace/frames.h"
#include "trace/recording_writer.h"
#include "trace/sample_codec.h"
#include "trace/sink.h"

namespace tidemark {

class TraceWriter final : public RecordingWriter {
 public:
  /// Writes the file header and the process record at once, so that even a recording without events reads.
  static Result<std::unique_ptr<TraceWriter>> create(std::unique_ptr<Sink> sink, const ProcessInfo& process);

  /// Leaves out the frames for skipping events: nobody follows the file.
  void leave_out_checkpoints() { with_checkpoints_ = false; }

  StringId string(std::string_view text) override;
  LocationId location(const Location& location) override;
  StackId stack(StackId parent, LocationId location) override;
  ModuleId module(const ModuleInfo& module) override;
  AutogradNodeId autograd_node(const AutogradNode& node) override;
  ThreadId thread(const ThreadInfo& thread) override;
  NnModuleId nn_module(const NnModule& module) override;
  void nn_module_name(const NnModuleName& name) override;
  void tensor(const ModelTensor& tensor) override;
  void process(const ProcessInfo& process) override;
  Result<void> event(const Event& event) override;
  void mark(const Mark& mark) override;
  void sample(const SampleRecord& record) override;
  void loss(const Loss& loss) override;
  Result<void> flush() override;
  Result<void> finish(const EndInfo& end) override;
  Result<void> finish_after_error(const EndInfo& end) override;
  void leave_out_above(std::uint64_t bytes) override { most_bytes_ = bytes; }
  [[nodiscard]] bool left_out() const override { return left_out_; }
  [[nodiscard]] std::uint64_t bytes_written() const override { return bytes_written_; }
  [[nodiscard]] std::uint64_t bytes_pending() const override;

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
  bool with_checkpoints_ = true;
  bool closed_ = false;  // finished, or a write failed
};

}  // namespace tidemark
