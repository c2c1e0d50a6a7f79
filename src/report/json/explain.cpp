#include "report/words/explain.h"

#include <utility>

#include "report/json/json.h"
#include "report/json/objects.h"

namespace tidemark {
namespace {

Json cached_json(const CachedMemory& memory) {
  return {{"bytes", memory.bytes}, {"pieces", memory.pieces}, {"largest_bytes", memory.largest}};
}

Json cache_json(const std::optional<OomCache>& cache) {
  if (!cache) return nullptr;
  return {{"usable", cached_json(cache->usable)},
          {"other_streams", cached_json(cache->other_streams)},
          {"other_pools", cached_json(cache->other_pools)},
          {"other_kinds", cached_json(cache->other_kinds)},
          {"pending_bytes", cache->pending},
          {"whole_segments_in_private_pools_bytes", cache->whole_in_private_pools},
          {"whole_segments_in_default_pool_bytes", cache->whole_in_default_pool}};
}

Json request_json(const OomFailure& failure) {
  const bool named = failure.thread && failure.thread->tid;
  Json thread = nullptr;
  if (named) thread = {{"tid", *failure.thread->tid}, {"name", nullable_text(failure.thread->name)}};
  return {{"bytes", failure.request.bytes},
          {"segment_bytes", failure.caching ? Json(failure.request.segment) : Json(nullptr)},
          {"expandable", failure.caching ? Json(failure.request.expandable) : Json(nullptr)},
          {"stack", stack_json(failure.stack)},
          {"thread", std::move(thread)},
          {"stream", nullable(failure.stream)},
          {"pool", failure.pool ? Json{failure.pool->first, failure.pool->second} : Json(nullptr)}};
}

const char* name_of(OomStop stop) {
  switch (stop) {
    case OomStop::unknown:
      break;
    case OomStop::device:
      return "device";
    case OomStop::limit:
      return "limit";
  }
  return "unknown";
}

const char* name_of(LeakVerdict verdict) {
  switch (verdict) {
    case LeakVerdict::leak:
      return "leak";
    case LeakVerdict::no_leak:
      return "no_leak";
    case LeakVerdict::insufficient_data:
      break;
  }
  return "insufficient_data";
}

Json findings_json(const OomFailure& failure) {
  Json list = Json::array();
  for (const OomFinding& finding : failure.findings) {
    list.push_back({{"cause", name_of(finding.cause)},
                    {"bytes", finding.bytes},
                    {"certain", finding.certain},
                    {"text", evidence_words(failure, finding)}});
  }
  return list;
}

Json changes_json(const Explanation& explanation, const OomFailure& failure) {
  Json list = Json::array();
  for (const OomChange& change : failure.changes) {
    const bool blocks = change.remedy == OomRemedy::free_blocks;
    list.push_back({{"change", name_of(change.remedy)},
                    {"bytes", change.bytes},
                    {"certain", change.certain},
                    {"blocks", blocks ? Json(change.blocks) : Json(nullptr)},
                    {"of_blocks", blocks ? Json(change.of_blocks) : Json(nullptr)},
                    {"stack", stack_json(change.stack)},
                    {"text", change_words(failure, change)},
                    {"check", check_words(explanation, failure, change)}});
  }
  return list;
}

Json leaks_json(const OomFailure& failure) {
  Json list = Json::array();
  for (const LeakPlace& place : failure.leaks) {
    list.push_back({{"bytes_per_step", place.growth.bytes_per_step.value},
                    {"held_bytes", place.held_bytes},
                    {"held_blocks", place.held_blocks},
                    {"stack", stack_json(place.stack)}});
  }
  return {{"verdict", name_of(failure.leak_verdict)},
          {"steps", failure.step_count},
          {"leaked_bytes", failure.leaked},
          {"leaks", std::move(list)}};
}

Json holders_json(const OomFailure& failure) {
  Json list = Json::array();
  for (const OomHolder& holder : failure.holders) {
    list.push_back({{"bytes", holder.bytes},
                    {"blocks", holder.blocks},
                    {"share", holder.share},
                    {"oldest_ns", holder.oldest_ns},
                    {"newest_ns", holder.newest_ns},
                    {"stack", stack_json(holder.stack)}});
  }
  return list;
}

Json places_json(const Places& places) {
  Json list = Json::array();
  for (const Place& place : places.places) {
    list.push_back({{"bytes", place.bytes},
                    {"blocks", place.blocks},
                    {"stacks", place.stacks},
                    {"share", place.share},
                    {"stack", stack_json(place.stack)}});
  }
  return list;
}

Json failure_json(const Explanation& explanation, const OomFailure& failure) {
  Json limit = nullptr;
  if (failure.limit) limit = {{"at_least_bytes", failure.limit->at_least}, {"below_bytes", failure.limit->below}};
  return {{"device", to_string(failure.device)},
          {"verdict", verdict_words(failure)},
          {"cause", failure.cause ? Json(name_of(*failure.cause)) : Json(nullptr)},
          {"count", failure.count},
          {"first_ns", failure.first_ns},
          {"last_ns", failure.last_ns},
          {"request", request_json(failure)},
          {"allocated_bytes", failure.allocated},
          {"reserved_bytes", nullable(failure.reserved)},
          {"cached_bytes", nullable(failure.cached)},
          {"device_free_bytes", nullable(failure.device_free)},
          {"outside_bytes", nullable(failure.outside)},
          {"cache", cache_json(failure.cache)},
          {"stopped_by", name_of(failure.stop)},
          {"limit", std::move(limit)},
          {"missing_bytes", nullable(failure.missing)},
          {"findings", findings_json(failure)},
          {"leak_analysis", leaks_json(failure)},
          {"changes", changes_json(explanation, failure)},
          {"holders", holders_json(failure)},
          {"other_holders", failure.other_holders},
          {"other_holders_bytes", failure.other_bytes},
          {"places", places_json(failure.places)},
          {"other_places", failure.places.other_places},
          {"other_places_bytes", failure.places.other_bytes},
          {"unrecorded_bytes", failure.unrecorded}};
}

}  // namespace

Json to_object(const Explanation& explanation) {
  Json object = recording_json(explanation.recording);
  object["capacity_bytes"] = nullable(explanation.capacity);
  object["failed_requests"] = explanation.failed_requests;
  object["failures"] = Json::array();
  for (const OomFailure& failure : explanation.failures) {
    object["failures"].push_back(failure_json(explanation, failure));
  }
  object["other_failures"] = explanation.other_failures;
  object["devices"] = Json::array();
  for (const DeviceSummary& device : explanation.devices) {
    object["devices"].push_back({{"device", to_string(device.device)},
                                 {"peak_allocated_bytes", device.peak_allocated_bytes},
                                 {"peak_allocated_at_ns", nullable(device.peak_allocated_at_ns)},
                                 {"peak_reserved_bytes", nullable(device.peak_reserved_bytes)},
                                 {"peak_reserved_at_ns", nullable(device.peak_reserved_at_ns)}});
  }
  return object;
}

std::string to_json(std::span<const Explanation> explanations) {
  return print_all(explanations);
}

}  // namespace tidemark
