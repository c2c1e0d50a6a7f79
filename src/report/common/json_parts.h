// What the JSON reports share.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "analyze/common/recording_info.h"
#include "analyze/common/stack_names.h"
#include "analyze/timeline/host_timeline.h"

namespace tidemark {

using Json = nlohmann::ordered_json;  // fields in the order in which they are written below

template <typename T>
Json nullable(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// Null for text that is empty when unknown.
inline Json nullable_text(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

/// {"function", "file", "line", "kind"}.
Json frame_json(const FrameName& frame);
/// {"label", "frames": outermost first}; null when the stack is not known.
Json stack_json(const NamedStack& stack);
/// The fields that say what a row of holders is about: "stack", or an owner by its kind.
void add_key(Json& row, const NamedStack& stack);
void add_key(Json& row, const BlockOwner& owner);
/// {"peak_bytes", "peak_at_ns", "end_bytes"}; null where there was none.
Json sampled_json(const std::optional<SampledBytes>& bytes);
/// "file", "process", "event_count", "duration_ns", "data_quality".
Json recording_json(const RecordingInfo& recording);
/// One object for one result, {"recordings": [...]} for several.
std::string print_json(std::vector<Json> objects);

}  // namespace tidemark
