#include "report/host_ledger/json.h"

#include <utility>

#include "report/common/json.h"
#include "report/common/json_objects.h"
#include "report/explain/words.h"

namespace tidemark {
namespace {

Json cached_json(const CachedMemory& memory) {
  return {{"bytes", memory.bytes}, {"block_count", memory.blocks}, {"largest_block_bytes", memory.largest}};
}

Json cache_json(const std::optional<OomCache>& cache) {
  if (!cache) return nullptr;
  return {{"usable", cached_json(cache->usable)},
          {"other_streams", cached_json(cache->other_streams)},
          {"other_pools", cached_json(cache->other_pools)},
          {"other_segment_kinds", cached_json(cache->other_kinds)},
          {"pending_free_bytes", cache->pending},
          {"releasable_in_private_pools_bytes", cache->whole_in_private_pools},
          {"releasable_in_default_pool_bytes", cache->whole_in_default_pool}};
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

Json findings_json(const OomFailure& failure) {
  Json list = Json::array();
  for (const OomFinding& finding : failure.findings) {
    list.push_back({{"cause", name_of(finding.cause)},
                    {"bytes", finding.bytes},
                    {"certain", finding.certain},
                    {"text", evidence_text(failure, finding)}});
  }
  return list;
}

Json fixes_json(const Explanation& explanation, const OomFailure& failure) {
  Json list = Json::array();
  for (const OomFix& fix : failure.fixes) {
    const bool blocks = fix.kind == OomFixKind::free_blocks;
    list.push_back({{"kind", name_of(fix.kind)},
                    {"bytes", fix.bytes},
                    {"certain", fix.certain},
                    {"block_count", blocks ? Json(fix.blocks) : Json(nullptr)},
                    {"stack_block_count", blocks ? Json(fix.of_blocks) : Json(nullptr)},
                    {"stack", stack_json(fix.stack)},
                    {"text", fix_text(failure, fix)},
                    {"check", check_text(explanation, failure, fix)}});
  }
  return list;
}

Json leaks_json(const OomFailure& failure) {
  Json list = Json::array();
  for (const LeakSite& site : failure.leaks) {
    list.push_back({{"bytes_per_step", site.growth.bytes_per_step.value},
                    {"held_bytes", site.held_bytes},
                    {"held_block_count", site.held_blocks},
                    {"stack", stack_json(site.stack)}});
  }
  return {{"verdict", name_of(failure.leak_verdict)},
          {"step_count", failure.step_count},
          {"leaked_bytes", failure.leaked},
          {"leaks", std::move(list)}};
}

Json top_allocations_json(const OomFailure& failure) {
  Json list = Json::array();
  for (const TopAllocation& allocation : failure.top_allocations) {
    list.push_back({{"bytes", allocation.bytes},
                    {"block_count", allocation.blocks},
                    {"share", allocation.share},
                    {"oldest_at_ns", allocation.oldest_ns},
                    {"newest_at_ns", allocation.newest_ns}});
    add_key(list.back(), allocation.stack);
  }
  return list;
}

Json call_sites_json(const CallSites& sites) {
  Json list = Json::array();
  for (const CallSite& site : sites.call_sites) {
    list.push_back({{"bytes", site.bytes},
                    {"block_count", site.blocks},
                    {"stack_count", site.stacks},
                    {"share", site.share},
                    {"stack", stack_json(site.stack)}});
  }
  return list;
}

Json failure_advice_json(const OomFailure& failure) {
  Json list = Json::array();
  for (const OomAdvice& advice : failure.advice) {
    list.push_back({{"kind", name_of(advice.kind)},
                    {"held_bytes", advice.avoidable_peak_bytes},
                    {"known_as", name_in(kConfidenceNames, advice.known_as)},
                    {"has_request", advice.has_request},
                    {"suffices", nullable(advice.suffices)},
                    {"block_count", advice.peak_blocks},
                    {"modules", advice_modules_json(advice, "held_bytes")},
                    {"stack", stack_json(advice.stack)}});
  }
  return list;
}

Json failure_json(const Explanation& explanation, const OomFailure& failure) {
  Json limit = nullptr;
  if (failure.limit) limit = {{"at_least_bytes", failure.limit->at_least}, {"below_bytes", failure.limit->below}};
  Json object = {{"device", to_string(failure.device)},
                 {"message", verdict_text(failure)},
                 {"cause", failure.cause ? Json(name_of(*failure.cause)) : Json(nullptr)},
                 {"count", failure.count},
                 {"first_at_ns", failure.first_ns},
                 {"last_at_ns", failure.last_ns},
                 {"request", request_json(failure)},
                 {"allocated_bytes", failure.allocated},
                 {"reserved_bytes", nullable(failure.reserved)},
                 {"cached_bytes", nullable(failure.cached)},
                 {"device_free_bytes", nullable(failure.device_free)},
                 {"device_free_sampled_at_ns", nullable(failure.sampled_at_ns)},
                 {"capacity_bytes", nullable(failure.capacity)},
                 {"outside_pytorch_bytes", nullable(failure.outside)},
                 {"cache", cache_json(failure.cache)},
                 {"refused_by", name_of(failure.refused_by)},
                 {"limit", std::move(limit)},
                 {"missing_bytes", nullable(failure.missing)},
                 {"causes", findings_json(failure)},
                 {"leak_analysis", leaks_json(failure)},
                 {"fixes", fixes_json(explanation, failure)},
                 {"top_allocations", top_allocations_json(failure)},
                 {"other_stack_count", failure.other_allocations},
                 {"other_stacks_bytes", failure.other_bytes},
                 {"call_sites", call_sites_json(failure.call_sites)},
                 {"other_call_site_count", failure.call_sites.other_call_sites},
                 {"other_call_sites_bytes", failure.call_sites.other_bytes},
                 {"unrecorded_bytes", failure.unrecorded}};
  if (!failure.advice.empty()) object["advice"] = failure_advice_json(failure);
  return object;
}

}  // namespace

Json to_object(const Explanation& explanation) {
  Json object = recording_json(explanation.recording);
  object["capacity_bytes"] = nullable(explanation.capacity);
  object["out_of_memory_count"] = explanation.failed_requests;
  object["failures"] = Json::array();
  for (const OomFailure& failure : explanation.failures) {
    object["failures"].push_back(failure_json(explanation, failure));
  }
  object["other_failure_count"] = explanation.other_failures;
  object["killed"] = kills_json(explanation.kills);
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
