#include "report/common/json_parts.h"

#include <string>

#include "query/results/common.h"

namespace tidemark {
Json frame_json(const FrameName& frame) {
  return to_object(frame);
}

Json stack_json(const NamedStack& stack) {
  return JsonObject::json_of(known(stack));
}

void add_key(Json& row, const NamedStack& stack) {
  if (stack.owner) return add_key(row, *stack.owner);
  row["stack"] = stack_json(stack);
}

void add_key(Json& row, const BlockOwner& owner) {
  row[std::string(name_in(kOwnerKindNames, owner.kind))] = nullable(owner.name);
}

Json sampled_json(const std::optional<SampledBytes>& bytes) {
  return JsonObject::json_of(bytes);
}

Json recording_json(const RecordingInfo& recording) {
  return to_object(recording);
}

}  // namespace tidemark
