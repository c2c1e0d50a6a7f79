#include "report/json/parts.h"

#include <utility>

#include "report/words/frame_text.h"

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

Json quality_json(const DataQuality& quality) {
  Json notes = Json::array();
  for (const QualityNote& note : quality.notes) {
    notes.push_back(
        {{"kind", note.kind}, {"severity", note.severity}, {"count", nullable(note.count)}, {"text", note.text}});
  }
  return {{"complete", quality.complete}, {"notes", std::move(notes)}};
}

}  // namespace

Json frame_json(const FrameName& frame) {
  return {{"function", frame.function},
          {"file", nullable_text(frame.file)},
          {"line", frame.line == 0 ? Json(nullptr) : Json(frame.line)},
          {"kind", frame.kind == Location::Kind::python ? "python" : "native"}};
}

Json stack_json(const NamedStack& stack) {
  if (stack.frames.empty()) return nullptr;
  Json frames = Json::array();
  for (const FrameName& frame : stack.frames) frames.push_back(frame_json(frame));
  return {{"label", stack_text(stack)}, {"frames", std::move(frames)}};
}

Json recording_json(const RecordingInfo& recording) {
  return {{"file", recording.path},
          {"source", recording.source == SourceKind::recording ? "recording" : "pytorch_snapshot"},
          {"allocator_settings", nullable(recording.allocator_settings)},
          {"process", process_json(recording.process)},
          {"event_count", recording.event_count},
          {"duration_ns", recording.duration_ns},
          {"data_quality", quality_json(recording.quality)}};
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
