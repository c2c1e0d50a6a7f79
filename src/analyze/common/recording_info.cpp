#include "analyze/common/recording_info.h"

#include <algorithm>
#include <string_view>

namespace tidemark {
namespace {

// All that a worker does, it does below this function.
bool has_worker_loop(const Definitions& definitions) {
  const auto text = [&](StringId id) {
    return id.value < definitions.strings.size() ? std::string_view(definitions.strings[id.value]) : std::string_view();
  };
  return std::any_of(definitions.locations.begin(), definitions.locations.end(), [&](const Location& location) {
    return location.kind == Location::Kind::python && text(location.function) == "_worker_loop" &&
           text(location.file).ends_with("/torch/utils/data/_utils/worker.py");
  });
}

}  // namespace

RecordingInfo describe_recording(const Overview& overview, const Symbols& symbols) {
  const auto& settings = overview.source.allocator_settings;
  RecordingInfo recording;
  recording.path = overview.path;
  recording.source = overview.source.kind;
  if (settings) recording.allocator_settings = settings->text;
  recording.process = overview.definitions.process;
  recording.is_worker = has_worker_loop(overview.definitions);
  recording.event_count = overview.event_count;
  recording.duration_ns = overview.end_ns;
  recording.quality = analyze_data_quality(overview, symbols);
  return recording;
}

}  // namespace tidemark
