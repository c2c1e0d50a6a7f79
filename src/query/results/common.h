// Descriptions shared by several commands: the recording, stacks, owners of memory, samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "analyze/advice/advice.h"
#include "analyze/common/call_sites.h"
#include "analyze/common/recording_info.h"
#include "analyze/common/stack_names.h"
#include "analyze/timeline/host_timeline.h"
#include "analyze/usage/breakdown.h"
#include "query/describe/describe.h"
#include "query/words/data_quality.h"
#include "query/words/stack_text.h"

namespace tidemark {

/// The module of Python that has these types.
inline constexpr std::string_view kCommonTypes = "common";

template <typename Visitor>
void describe(Visitor& v, const FrameName& frame) {
  v.type("Frame", "A call in a stack.", kCommonTypes);
  v.field("function", frame.function, "name; native without a symbol: library and offset");
  v.field("file", known_text(frame.file), "source file of Python, library of native code");
  v.field("line", when(frame.line != 0, frame.line), "of Python");
  v.field("kind", one_of<"python", "native">(frame.kind == Location::Kind::python ? "python" : "native"));
  v.field_if(frame.graph != CompiledGraph::none, "compiled", named<kCompiledGraphNames>(frame.graph),
             "of torch.compile: which graph");
  v.field_if(!frame.source_nodes.empty(), "source_nodes", frame.source_nodes,
             "of a generated line: the nodes of the graph that it stands for");
}

template <typename Visitor>
void describe(Visitor& v, const NamedStack& stack) {
  v.type("Stack", "A call stack; `frames` begin with the outermost.", kCommonTypes);
  v.field("label", stack_text(stack), "the call site on one line");
  v.field("frames", stack.frames);
}
/// Null: the stack is unknown.
[[nodiscard]] inline const NamedStack* known(const NamedStack& stack) {
  return stack.frames.empty() ? nullptr : &stack;
}

template <typename Visitor>
void describe(Visitor& v, const BlockOwner& owner) {
  v.type("Owner",
         "In a list by owner, the key that was asked for; its value is null where it is not known. The other keys are "
         "absent.",
         kCommonTypes);
  for (const EnumName<OwnerKind>& kind : kOwnerKindNames) {
    v.field_if(owner.kind == kind.value, kind.name, owner.name);
  }
}

/// Key of a row in a list of holders.
struct HolderKey {
  const NamedStack* stack = nullptr;
  const BlockOwner* owner = nullptr;  ///< in place of the stack
};
[[nodiscard]] inline HolderKey holder(const NamedStack& stack) {
  return {&stack, stack.owner ? &*stack.owner : nullptr};
}
template <typename Visitor>
void describe(Visitor& v, const HolderKey& key) {
  static const BlockOwner kNoOwner;
  v.type("Holder", "What holds memory: a stack, or the owner that was asked for.", kCommonTypes);
  v.part_if(key.owner != nullptr, key.owner == nullptr ? kNoOwner : *key.owner);
  v.field_if(key.owner == nullptr, "stack", key.stack == nullptr ? nullptr : known(*key.stack), "null: not recorded");
}

/// Kinds of rows that may be stacks.
using StackOrOwner = OneOf<"stack", "category", "component", "layer", "module", "phase", "step">;
[[nodiscard]] inline StackOrOwner stack_or(const std::optional<OwnerKind>& owner) {
  return {owner ? name_in(kOwnerKindNames, *owner) : "stack"};
}

template <typename Visitor>
void describe(Visitor& v, const CallSite& site) {
  v.type("CallSite", "A place in the program, or the owner that was asked for, and what it held at the peak.",
         kCommonTypes);
  v.field("bytes", site.bytes);
  v.field("block_count", site.blocks);
  v.field("stack_count", site.stacks);
  v.field("share", site.share, "of what was allocated");
  v.part(holder(site.stack));
}

template <typename Visitor>
void describe(Visitor& v, const CategoryBytes& category) {
  v.type("CategoryBytes", "Memory of one category, and the confidence of that category.", kCommonTypes);
  v.field("category", named<kCategoryNames>(category.category));
  v.field("bytes", category.bytes);
  v.field("exact_bytes", category.exact_bytes, "known from the pointers of the model's tensors");
  v.field("tensor_bytes", category.tensor_bytes, "in these tensors themselves");
  v.field("block_count", category.blocks);
  v.field("share", category.share, "of what was allocated");
  v.field("confidence", named<kConfidenceNames>(category.confidence()), "of all these blocks");
}

template <typename Visitor>
void describe(Visitor& v, const AdviceModule& module) {
  v.type("ModuleHeldAtPeak", "A module, and what it held at the peak.", kCommonTypes);
  v.field("module", module.path);
  v.field("held_at_peak_bytes", module.bytes);
}

template <typename Visitor>
void describe(Visitor& v, const Advice& advice) {
  v.type("Advice", "A change of the program that would lower the peak.", kCommonTypes);
  v.field("kind", named<kAdviceKindNames>(advice.kind));
  v.field("avoidable_peak_bytes", advice.avoidable_peak_bytes, "by which the peak would be lower");
  v.field("confidence", named<kConfidenceNames>(advice.confidence), "the least certain of the blocks concerned");
  v.field("held_at_peak_bytes", advice.peak_bytes, "by the blocks concerned");
  v.field("held_at_peak_block_count", advice.peak_blocks);
  v.field("modules", advice.modules, "that are concerned, most bytes first");
  v.field("stack", known(advice.stack), "of most of these bytes");
}

template <typename Visitor>
void describe(Visitor& v, const SampledBytes& bytes) {
  v.type("SampledBytes", "A value that was sampled: its highest sample, and the last.", kCommonTypes);
  v.field("peak_bytes", bytes.peak);
  v.field("peak_at_ns", bytes.peak_at_ns);
  v.field("end_bytes", bytes.end, "null: last read more than 10 s before the end");
  v.field("last_at_ns", bytes.last_at_ns, "when the last one was read");
}

template <typename Visitor>
void describe(Visitor& v, const ProcessInfo& process) {
  v.type("Process", "The recorded process; of a snapshot little is known.", kCommonTypes);
  v.field("pid", process.pid);
  v.field("parent_pid", process.parent_pid);
  v.field("rank", process.rank, "of the launcher, as the next two; null without one");
  v.field("local_rank", process.local_rank);
  v.field("world_size", process.world_size);
  v.field("hostname", known_text(process.hostname));
  v.field("command_line", known_text(process.command_line));
  v.field("python_version", known_text(process.python_version));
  v.field("torch_version", known_text(process.torch_version));
  v.field("stack_mode", known_text(process.stack_mode), R"("python", "native", "both" or "none")");
  v.field("recorder_version", known_text(process.recorder_version));
  v.field("start_wall_ns", process.start_wall_ns, "Unix time");
}

template <typename Visitor>
void describe(Visitor& v, const QualityIssue& issue) {
  using Value = std::variant<std::uint64_t, std::string, QualityNames>;
  struct AsValue {
    Value operator()(std::uint64_t number) const { return number; }
    Value operator()(const QualityBytes& value) const { return value.bytes; }
    Value operator()(const QualityDuration& value) const { return value.ns; }
    Value operator()(const std::string& text) const { return text; }
    Value operator()(const QualityNames& names) const { return names; }
  };
  Keyed<Value> params;
  for (const QualityParam& param : issue.params) {
    params.emplace_back(param.name, std::visit(AsValue(), param.value));
  }
  const QualityFacts& facts = facts_of(issue.id);
  v.type("DataQualityIssue", "Something that is missing in the recording, or not exact.", kCommonTypes);
  v.field("id", facts.name);
  v.field("severity", named<kSeverityNames>(facts.severity));
  v.field("count", issue.count, "in `unit`");
  v.field("unit", when(issue.count.has_value(), named<kQualityUnitNames, QualityUnit::none>(facts.unit)));
  v.field("params", params, "what the text says beside the count");
  v.field("text", quality_text(issue), "a sentence");
}

template <typename Visitor>
void describe(Visitor& v, const DataQuality& quality) {
  v.type("DataQuality", "Whether anything is missing in the recording.", kCommonTypes);
  v.field("complete", quality.complete, "no event is missing");
  v.field("issues", quality.issues, "worst first");
}

template <typename Visitor>
void describe(Visitor& v, const RecordingInfo& recording) {
  v.type("OfRecording", "Which recording a result is of.", kCommonTypes);
  v.field("file", recording.path, "path as given");
  v.field("source", one_of<"recording", "pytorch_snapshot">(
                        recording.source == SourceKind::recording ? "recording" : "pytorch_snapshot"));
  v.field("allocator_settings", recording.allocator_settings,
          R"(PYTORCH_CUDA_ALLOC_CONF; "" for the defaults; null: unknown)");
  v.field("process", recording.process);
  v.field("event_count", recording.event_count, "events in the recording, or entries of the snapshot's trace");
  v.field("duration_ns", recording.duration_ns, "from the start to the last event");
  v.field("data_quality", recording.quality);
  v.field_if(!recording.simulated_gpu.empty(), "simulated_gpu", recording.simulated_gpu,
             "name of the GPU that `tidemark plan` simulated; absent: the program ran without it");
  v.field_if(!recording.chosen_blocks.empty(), "filter", recording.chosen_blocks,
             "which blocks were chosen, in words; absent: all");
}

}  // namespace tidemark
