#include "trace/segment_joiner.h"

#include <algorithm>
#include <utility>

#include "trace/reader.h"
#include "trace/writer.h"

namespace tidemark {

namespace {

template <typename Id>
Id mapped(const std::vector<Id>& ids, Id id) {
  return id.value < ids.size() ? ids[id.value] : Id{};
}

bool begins_lead_in(const Event& event) {
  return event.kind == EventKind::pause && event.time_ns == 0 && !event.thread.valid();
}

}  // namespace

void SegmentJoiner::begin(TraceReader& reader, const SegmentFile* file) {
  first_ = reader_ == nullptr;
  reader_ = &reader;
  file_ = file;
  ids_ = {};
  in_lead_in_ = !first_ || (file != nullptr && file->begin_ns > 0);
  behind_lead_in_ = false;
  begin_ns_.reset();
  devices_here_ = 0;
  threads_.begin_segment();
  nn_modules_.begin_segment();
  reader.observe_samples([this](const SampleRecord& record) { take(record); });
}

Result<bool> SegmentJoiner::take_frame() {
  Frame frame;
  auto more = reader_->next_frame(frame, batch_, [&](format::RecordKind kind) { take(kind, reader_->definitions()); });
  if (!more || !*more) return more;
  for (const Event& event : batch_) {
    if (Result<void> taken = take(event); !taken) return taken.error();
  }
  return true;
}

void SegmentJoiner::end_segment() {
  for (const Loss& loss : reader_->definitions().losses) {
    if (loss.kind == QualityId::torn_tail || loss.kind == QualityId::unknown_frames) writer_->loss(loss);
  }
  end_ = reader_->definitions().end;
  reader_->observe_samples({});
}

Result<JoinedRecording> SegmentJoiner::finish() {
  Result<void> finished = end_ ? writer_->finish(*end_) : writer_->flush();
  if (!finished) return finished.error();
  joined_.bytes = writer_->bytes_written();
  if (end_) joined_.end_ns = end_->time_ns;
  return joined_;
}

void SegmentJoiner::take(format::RecordKind kind, const Definitions& definitions) {
  using format::RecordKind;
  const auto key = [](const std::vector<std::uint64_t>* numbers, std::size_t index, std::uint64_t value,
                      const std::string& name) {
    return numbers != nullptr && index < numbers->size() ? Key((*numbers)[index]) : Key(std::pair(value, name));
  };
  switch (kind) {
    case RecordKind::process:
      return writer_->process(definitions.process);
    case RecordKind::string:
      return ids_.strings.push_back(writer_->string(definitions.strings.back()));
    case RecordKind::location:
      return ids_.locations.push_back(writer_->location(mapped_location(definitions.locations.back())));
    case RecordKind::stack: {
      const StackNode& node = definitions.stacks.back();
      return ids_.stacks.push_back(
          writer_->stack(mapped(ids_.stacks, node.parent), mapped(ids_.locations, node.location)));
    }
    case RecordKind::thread: {
      const ThreadInfo& thread = definitions.threads.back();
      const Key wanted = key(file_ != nullptr ? &file_->threads : nullptr, ids_.threads.size(),
                             static_cast<std::uint64_t>(thread.tid.value_or(-1)), thread.name);
      return ids_.threads.push_back(threads_.find(wanted, [&] { return writer_->thread(thread); }));
    }
    case RecordKind::module: {
      ModuleInfo module = definitions.modules.back();
      module.path = mapped(ids_.strings, module.path);
      return ids_.modules.push_back(writer_->module(module));
    }
    case RecordKind::nn_module: {
      const NnModule& module = definitions.nn_modules.back();
      const Key wanted =
          key(file_ != nullptr ? &file_->nn_modules : nullptr, ids_.nn_modules.size(), module.address, "");
      return ids_.nn_modules.push_back(nn_modules_.find(wanted, [&] { return writer_->nn_module(module); }));
    }
    case RecordKind::nn_module_name: {
      const NnModuleName& name = definitions.nn_module_names.back();
      return writer_->nn_module_name({mapped(ids_.nn_modules, name.module), mapped(ids_.nn_modules, name.root),
                                      mapped(ids_.strings, name.path), mapped(ids_.strings, name.type)});
    }
    case RecordKind::autograd_node: {
      const AutogradNode& node = definitions.autograd_nodes.back();
      return ids_.nodes.push_back(
          writer_->autograd_node({mapped(ids_.strings, node.type), mapped(ids_.threads, node.forward_thread)}));
    }
    case RecordKind::tensor:
      if (!skips()) take(definitions.tensors.back());
      return;
    case RecordKind::loss:
      if (!skips()) writer_->loss(definitions.losses.back());
      return;
    case RecordKind::mark:
      if (!skips()) take(definitions.marks.back());
      return;
    case RecordKind::end:
      return;
  }
}

void SegmentJoiner::take(ModelTensor tensor) {
  tensor.module = mapped(ids_.nn_modules, tensor.module);
  tensor.name = mapped(ids_.strings, tensor.name);
  tensor.state = mapped(ids_.strings, tensor.state);
  tensor.dtype = mapped(ids_.strings, tensor.dtype);
  writer_->tensor(tensor);
}

void SegmentJoiner::take(Mark mark) {
  mark.name = mapped(ids_.strings, mark.name);
  mark.thread = mapped(ids_.threads, mark.thread);
  writer_->mark(mark);
}

void SegmentJoiner::take(const SampleRecord& record) {
  // All segments have the devices in the same order.
  if (std::holds_alternative<SampledDevice>(record) && devices_here_++ < devices_) return;
  devices_ = std::max(devices_, devices_here_);
  writer_->sample(record);
}

Location SegmentJoiner::mapped_location(Location location) const {
  location.file = mapped(ids_.strings, location.file);
  location.function = mapped(ids_.strings, location.function);
  location.module = mapped(ids_.modules, location.module);
  location.nn_module = mapped(ids_.nn_modules, location.nn_module);
  location.source_nodes = mapped(ids_.strings, location.source_nodes);
  return location;
}

Result<void> SegmentJoiner::take(Event event) {
  if (file_ == nullptr && !begin_ns_ && begins_lead_in(event)) in_lead_in_ = true;
  const bool lead_in = in_lead_in_ || is_pause_behind_lead_in(event);
  behind_lead_in_ = in_lead_in_ && event.kind == EventKind::resume;
  if (behind_lead_in_) {
    in_lead_in_ = false;
    begin_ns_ = event.time_ns;
  }
  if (lead_in && !first_) return {};
  event.stack = mapped(ids_.stacks, event.stack);
  event.thread = mapped(ids_.threads, event.thread);
  event.node = mapped(ids_.nodes, event.node);
  if (!lead_in) ++joined_.event_count;
  if (event.kind == EventKind::out_of_memory) ++joined_.oom_count;
  return writer_->event(event);
}

bool SegmentJoiner::is_pause_behind_lead_in(const Event& event) const {
  return behind_lead_in_ && event.kind == EventKind::pause && event.time_ns == begin_ns_ && !event.thread.valid();
}

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
