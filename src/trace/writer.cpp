#include "trace/writer.h"

#include <utility>

#include "trace/definition_encoder.h"
#include "trace/event_encoder.h"
#include "trace/frame_encoder.h"
#include "trace/sample_codec.h"

namespace tidemark {
namespace {

class FrameWriter final : public TraceWriter {
 public:
  explicit FrameWriter(std::unique_ptr<Sink> sink) : sink_(std::move(sink)) {}

  Result<void> start(const ProcessInfo& process) {
    append_file_header(out_);
    definitions_.process(process);
    return flush();
  }

  StringId string(std::string_view text) override { return closed_ ? StringId{} : definitions_.string(text); }
  LocationId location(const Location& location) override {
    return closed_ ? LocationId{} : definitions_.location(location);
  }
  StackId stack(StackId parent, LocationId location) override {
    return closed_ ? StackId{} : definitions_.stack(parent, location);
  }
  ModuleId module(const ModuleInfo& module) override { return closed_ ? ModuleId{} : definitions_.module(module); }
  ThreadId thread(const ThreadInfo& thread) override { return closed_ ? ThreadId{} : definitions_.thread(thread); }
  void process(const ProcessInfo& process) override {
    if (!closed_) definitions_.process(process);
  }
  void mark(const Mark& mark) override {
    if (!closed_) definitions_.mark(mark);
  }
  void sample(const SampleRecord& record) override {
    if (!closed_) samples_.add(record);
  }
  void loss(const Loss& loss) override {
    if (!closed_) definitions_.loss(loss);
  }

  Result<void> event(const Event& event) override {
    if (closed_) return {};
    if (undefined(event.stack.value, definitions_.stack_count()) ||
        undefined(event.thread.value, definitions_.thread_count())) {
      Event known = event;
      if (undefined(event.stack.value, definitions_.stack_count())) known.stack = {};
      if (undefined(event.thread.value, definitions_.thread_count())) known.thread = {};
      events_.add(known);
    } else {
      events_.add(event);
    }
    return events_.has_room() ? Result<void>() : flush();
  }

  // Definitions go first: the events of this frame may refer to them, and no events frame precedes what it refers to.
  Result<void> flush() override {
    if (closed_) return {};
    definitions_.append_frames(frames_, out_);
    if (!events_.empty()) events_.append_frame(frames_, out_);
    samples_.append_frames(frames_, out_);
    if (out_.empty()) return {};
    Result<void> appended = sink_->append(out_);
    if (appended.ok()) {
      bytes_written_ += out_.size();
    } else {
      closed_ = true;
    }
    out_.clear();
    return appended;
  }

  Result<void> finish(const EndInfo& end) override {
    if (closed_) return {};
    // A flush of its own, so that the end record is the file's last.
    if (Result<void> flushed = flush(); !flushed.ok()) return flushed;
    definitions_.end(end);
    Result<void> flushed = flush();
    closed_ = true;
    return flushed;
  }

  [[nodiscard]] std::uint64_t bytes_written() const override { return bytes_written_; }
  [[nodiscard]] std::uint64_t bytes_pending() const override {
    if (closed_) return 0;
    return definitions_.pending_bytes() + samples_.pending_bytes() +
           (events_.empty() ? 0 : format::kFrameHeaderBytes + events_.payload_bytes());
  }

 private:
  static bool undefined(std::uint32_t id, std::uint32_t defined) { return id >= defined && id != StackId::kNone; }

  std::unique_ptr<Sink> sink_;
  FrameEncoder frames_;
  DefinitionEncoder definitions_;
  EventEncoder events_;
  SampleEncoder samples_;
  std::vector<std::byte> out_;
  std::uint64_t bytes_written_ = 0;
  bool closed_ = false;  // finished, or a write failed
};

}  // namespace

Result<std::unique_ptr<TraceWriter>> TraceWriter::create(std::unique_ptr<Sink> sink, const ProcessInfo& process) {
  auto writer = std::make_unique<FrameWriter>(std::move(sink));
  if (Result<void> started = writer->start(process); !started.ok()) return started.error();
  return std::unique_ptr<TraceWriter>(std::move(writer));
}

}  // namespace tidemark
