#include "report/common/json_parts.h"

#include <string>
#include <utility>

#include "report/common/data_quality.h"
#include "report/common/stack_text.h"

namespace tidemark {
namespace {

Json process_json(const ProcessInfo& process) {
  return {{"pid", nullable(process.pid)},
          {"parent_pid", nullable(process.parent_pid)},
          {"rank", nullable(process.rank)},
          {"local_rank", nullable(process.local_rank)},
          {"world_size", nullable(process.world_size)},
          {"hostname", nullable_text(process.hostname)},
          {"command_line", nullable_text(process.command_line)},
          {"python_version", nullable_text(process.python_version)},
          {"torch_version", nullable_text(process.torch_version)},
          {"stack_mode", nullable_text(process.stack_mode)},
          {"recorder_version", nullable_text(process.recorder_version)},
          {"start_wall_ns", nullable(process.start_wall_ns)}};
}

struct ValueJson {
  Json operator()(std::uint64_t number) const { return number; }
  Json operator()(const QualityBytes& value) const { return value.bytes; }
  Json operator()(const QualityDuration& value) const { return value.ns; }
  Json operator()(const std::string& text) const { return text; }
  Json operator()(const QualityNames& names) const { return names; }
};

Json quality_json(const DataQuality& quality) {
  Json issues = Json::array();
  for (const QualityIssue& issue : quality.issues) {
    const QualityFacts& facts = facts_of(issue.id);
    Json params = Json::object();
    for (const QualityParam& param : issue.params) {
      params[std::string(param.name)] = std::visit(ValueJson(), param.value);
    }
    issues.push_back({{"id", facts.name},
                      {"severity", name_of(facts.severity)},
                      {"count", nullable(issue.count)},
                      {"unit", issue.count ? Json(name_of(facts.unit)) : Json(nullptr)},
                      {"params", std::move(params)},
                      {"text", quality_text(issue)}});
  }
  return {{"complete", quality.complete}, {"issues", std::move(issues)}};
}

}  // namespace

Json frame_json(const FrameName& frame) {
  Json json = {{"function", frame.function},
               {"file", nullable_text(frame.file)},
               {"line", frame.line == 0 ? Json(nullptr) : Json(frame.line)},
               {"kind", frame.kind == Location::Kind::python ? "python" : "native"}};
  if (frame.graph != CompiledGraph::none) json["compiled"] = name_in(kCompiledGraphNames, frame.graph);
  if (!frame.source_nodes.empty()) json["source_nodes"] = frame.source_nodes;
  return json;
}

Json stack_json(const NamedStack& stack) {
  if (stack.frames.empty()) return nullptr;
  Json frames = Json::array();
  for (const FrameName& frame : stack.frames) frames.push_back(frame_json(frame));
  return {{"label", stack_text(stack)}, {"frames", std::move(frames)}};
}

void add_key(Json& row, const NamedStack& stack) {
  if (stack.owner) return add_key(row, *stack.owner);
  row["stack"] = stack_json(stack);
}

void add_key(Json& row, const BlockOwner& owner) {
  row[std::string(name_in(kOwnerKindNames, owner.kind))] = nullable(owner.name);
}

Json sampled_json(const std::optional<SampledBytes>& bytes) {
  if (!bytes) return nullptr;
  return {{"peak_bytes", bytes->peak}, {"peak_at_ns", bytes->peak_at_ns}, {"end_bytes", bytes->end}};
}

Json recording_json(const RecordingInfo& recording) {
  Json object = {{"file", recording.path},
                 {"source", recording.source == SourceKind::recording ? "recording" : "pytorch_snapshot"},
                 {"allocator_settings", nullable(recording.allocator_settings)},
                 {"process", process_json(recording.process)},
                 {"event_count", recording.event_count},
                 {"duration_ns", recording.duration_ns},
                 {"data_quality", quality_json(recording.quality)}};
  if (!recording.chosen_blocks.empty()) object["filter"] = recording.chosen_blocks;
  return object;
}

std::string print_json(std::vector<Json> objects) {
  Json document;
  if (objects.size() == 1) {
    document = std::move(objects.front());
  } else {
    document["recordings"] = std::move(objects);
  }
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tidemark
