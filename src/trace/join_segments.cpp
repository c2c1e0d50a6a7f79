#include "trace/join_segments.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "trace/reader.h"
#include "trace/writer.h"

namespace tidemark {
namespace {

template <typename Id>
Id mapped(const std::vector<Id>& ids, Id id) {
  return id.value < ids.size() ? ids[id.value] : Id{};
}

class Joiner {
 public:
  explicit Joiner(std::unique_ptr<TraceWriter> writer) : writer_(std::move(writer)) {}

  Result<void> add(const SegmentFile& segment, bool first) {
    auto opened = TraceReader::open(segment.path());
    if (!opened) return opened.error();
    TraceReader& reader = **opened;
    ids_ = {};
    segment_ = &segment;
    first_ = first;
    in_lead_in_ = segment.begin_ns > 0;
    devices_here_ = 0;
    reader.observe_samples([this](const SampleRecord& record) { take(record); });
    Frame frame;
    std::vector<Event> batch;
    for (;;) {
      const auto more =
          reader.next_frame(frame, batch, [&](format::RecordKind kind) { take(kind, reader.definitions()); });
      if (!more) return more.error();
      if (!*more) break;
      for (const Event& event : batch) {
        if (Result<void> taken = take(event); !taken) return taken;
      }
    }
    for (const Loss& loss : reader.definitions().losses) {
      if (loss.kind == QualityId::torn_tail || loss.kind == QualityId::unknown_frames) writer_->loss(loss);
    }
    end_ = reader.definitions().end;
    return {};
  }

  Result<JoinedRecording> finish() {
    Result<void> finished = end_ ? writer_->finish(*end_) : writer_->flush();
    if (!finished) return finished.error();
    joined_.bytes = writer_->bytes_written();
    if (end_) joined_.end_ns = end_->time_ns;
    return joined_;
  }

 private:
  // What the segment under way calls an entry → what it is called in the result.
  struct Ids {
    std::vector<StringId> strings;
    std::vector<LocationId> locations;
    std::vector<StackId> stacks;
    std::vector<ThreadId> threads;
    std::vector<ModuleId> modules;
    std::vector<NnModuleId> nn_modules;
    std::vector<AutogradNodeId> nodes;
  };
  /// Threads and modules are no values: the same is known by its number in the window.
  template <typename Id, typename Make>
  static void add_object(std::vector<Id>& ids, const std::vector<std::uint64_t>& numbers,
                         std::unordered_map<std::uint64_t, Id>& known, const Make& make) {
    const std::size_t index = ids.size();
    if (index >= numbers.size()) {
      ids.push_back(make());
      return;
    }
    const auto found = known.find(numbers[index]);
    ids.push_back(found != known.end() ? found->second : known[numbers[index]] = make());
  }

  void take(format::RecordKind kind, const Definitions& definitions) {
    using format::RecordKind;
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
      case RecordKind::thread:
        return add_object(ids_.threads, segment_->threads, threads_,
                          [&] { return writer_->thread(definitions.threads.back()); });
      case RecordKind::module: {
        ModuleInfo module = definitions.modules.back();
        module.path = mapped(ids_.strings, module.path);
        return ids_.modules.push_back(writer_->module(module));
      }
      case RecordKind::nn_module:
        return add_object(ids_.nn_modules, segment_->nn_modules, nn_modules_,
                          [&] { return writer_->nn_module(definitions.nn_modules.back()); });
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
  void take(ModelTensor tensor) {
    tensor.module = mapped(ids_.nn_modules, tensor.module);
    tensor.name = mapped(ids_.strings, tensor.name);
    tensor.state = mapped(ids_.strings, tensor.state);
    tensor.dtype = mapped(ids_.strings, tensor.dtype);
    writer_->tensor(tensor);
  }
  void take(Mark mark) {
    mark.name = mapped(ids_.strings, mark.name);
    mark.thread = mapped(ids_.threads, mark.thread);
    writer_->mark(mark);
  }
  void take(const SampleRecord& record) {
    // All segments have the devices in the same order.
    if (std::holds_alternative<SampledDevice>(record) && devices_here_++ < devices_) return;
    devices_ = std::max(devices_, devices_here_);
    writer_->sample(record);
  }
  [[nodiscard]] Location mapped_location(Location location) const {
    location.file = mapped(ids_.strings, location.file);
    location.function = mapped(ids_.strings, location.function);
    location.module = mapped(ids_.modules, location.module);
    location.nn_module = mapped(ids_.nn_modules, location.nn_module);
    location.source_nodes = mapped(ids_.strings, location.source_nodes);
    return location;
  }

  Result<void> take(Event event) {
    const bool lead_in = in_lead_in_ || is_pause_behind_lead_in(event);
    behind_lead_in_ = in_lead_in_ && event.kind == EventKind::resume;
    if (behind_lead_in_) in_lead_in_ = false;
    if (lead_in && !first_) return {};
    event.stack = mapped(ids_.stacks, event.stack);
    event.thread = mapped(ids_.threads, event.thread);
    event.node = mapped(ids_.nodes, event.node);
    if (!lead_in) ++joined_.event_count;
    if (event.kind == EventKind::out_of_memory) ++joined_.oom_count;
    return writer_->event(event);
  }
  /// The lead-in of a program that has paused ends with a pause.
  [[nodiscard]] bool is_pause_behind_lead_in(const Event& event) const {
    return behind_lead_in_ && event.kind == EventKind::pause && event.time_ns == segment_->begin_ns &&
           !event.thread.valid();
  }
  /// What a segment begins with is known from those before.
  [[nodiscard]] bool skips() const { return in_lead_in_ && !first_; }

  std::unique_ptr<TraceWriter> writer_;
  Ids ids_;
  const SegmentFile* segment_ = nullptr;
  bool first_ = false;
  bool in_lead_in_ = false;
  bool behind_lead_in_ = false;  ///< at its end
  std::size_t devices_ = 0;
  std::size_t devices_here_ = 0;
  std::unordered_map<std::uint64_t, ThreadId> threads_;
  std::unordered_map<std::uint64_t, NnModuleId> nn_modules_;
  std::optional<EndInfo> end_;
  JoinedRecording joined_;
};

}  // namespace

Result<JoinedRecording> join_segments(const SegmentFiles& segments, std::unique_ptr<Sink> sink) {
  auto writer = TraceWriter::create(std::move(sink), {});
  if (!writer) return writer.error();
  Joiner joiner(std::move(*writer));
  for (const auto& segment : segments) {
    if (Result<void> added = joiner.add(*segment, segment == segments.front()); !added) return added.error();
  }
  return joiner.finish();
}

}  // namespace tidemark
