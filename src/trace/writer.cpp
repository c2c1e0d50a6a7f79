#include "trace/writer.h"

namespace tidemark {
namespace {

bool undefined(std::uint32_t id, std::uint32_t defined) {
  return id >= defined && id != StackId::kNone;
}

}  // namespace

Result<std::unique_ptr<TraceWriter>> TraceWriter::create(std::unique_ptr<Sink> sink, const ProcessInfo& process) {
  std::unique_ptr<TraceWriter> writer(new TraceWriter(std::move(sink)));
  append_file_header(writer->out_);
  writer->definitions_.process(process);
  if (Result<void> started = writer->flush(); !started.ok()) return started.error();
  return writer;
}

StringId TraceWriter::string(std::string_view text) {
  return closed_ ? StringId{} : definitions_.string(text);
}

LocationId TraceWriter::location(const Location& location) {
  return closed_ ? LocationId{} : definitions_.location(location);
}

StackId TraceWriter::stack(StackId parent, LocationId location) {
  return closed_ ? StackId{} : definitions_.stack(parent, location);
}

ModuleId TraceWriter::module(const ModuleInfo& module) {
  return closed_ ? ModuleId{} : definitions_.module(module);
}

AutogradNodeId TraceWriter::autograd_node(const AutogradNode& node) {
  return closed_ ? AutogradNodeId{} : definitions_.autograd_node(node);
}

NnModuleId TraceWriter::nn_module(const NnModule& module) {
  return closed_ ? NnModuleId{} : definitions_.nn_module(module);
}

void TraceWriter::nn_module_name(const NnModuleName& name) {
  if (!closed_) definitions_.nn_module_name(name);
}

void TraceWriter::tensor(const ModelTensor& tensor) {
  if (!closed_) definitions_.tensor(tensor);
}

ThreadId TraceWriter::thread(const ThreadInfo& thread) {
  return closed_ ? ThreadId{} : definitions_.thread(thread);
}

void TraceWriter::process(const ProcessInfo& process) {
  if (!closed_) definitions_.process(process);
}

Result<void> TraceWriter::event(const Event& event) {
  if (closed_) return {};
  const bool no_stack = undefined(event.stack.value, definitions_.stack_count());
  const bool no_thread = undefined(event.thread.value, definitions_.thread_count());
  const bool no_node = undefined(event.node.value, definitions_.autograd_node_count());
  if (no_stack || no_thread || no_node) {
    Event known = event;
    if (no_stack) known.stack = {};
    if (no_thread) known.thread = {};
    if (no_node) known.node = {};
    events_.add(known);
  } else {
    events_.add(event);
  }
  return events_.has_room() ? Result<void>() : flush();
}

void TraceWriter::mark(const Mark& mark) {
  if (!closed_) definitions_.mark(mark);
}

void TraceWriter::sample(const SampleRecord& record) {
  if (!closed_) samples_.add(record);
}

void TraceWriter::loss(const Loss& loss) {
  if (!closed_) definitions_.loss(loss);
}

// Definitions go first: the events of this frame may refer to them, and no events frame may precede its definitions.
Result<void> TraceWriter::flush() {
  if (closed_) return {};
  definitions_.append_frames(frames_, out_);
  if (!events_.empty()) {
    events_.append_frame(frames_, out_);
    if (with_checkpoints_) events_.append_checkpoint(frames_, out_);
  }
  samples_.append_frames(frames_, out_);
  if (bytes_written_ + out_.size() > most_bytes_) {
    left_out_ = true;
    out_.clear();
  }
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

Result<void> TraceWriter::finish(const EndInfo& end) {
  if (closed_) return {};
  // A separate flush, so that the end record is the file's last.
  if (Result<void> flushed = flush(); !flushed.ok()) return flushed;
  definitions_.end(end);
  Result<void> flushed = flush();
  closed_ = true;
  return flushed;
}

// Data to be written earlier is lost: the file has whole frames up to some earlier time.
Result<void> TraceWriter::finish_after_error(const EndInfo& end) {
  definitions_.loss({QualityId::disk, 1, sink_->failure_reason()});
  definitions_.end(end);
  definitions_.append_frames(frames_, out_);
  const auto size = sink_->append_last(out_);
  out_.clear();
  if (!size) return size.error();
  bytes_written_ = *size;
  return {};
}

std::uint64_t TraceWriter::bytes_pending() const {
  if (closed_) return 0;
  return definitions_.pending_bytes() + samples_.pending_bytes() +
         (events_.empty() ? 0 : format::kFrameHeaderBytes + events_.payload_bytes());
}

}  // namespace tidemark
