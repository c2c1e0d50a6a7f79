#include "query/words/explain.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "query/results/common.h"
#include "query/results/ledgers.h"
#include "query/results/results.h"

namespace tidemark {
namespace {

// Tags for several descriptions of one type.
struct AtFailure {};
struct TheRequest {};
struct LeaksThen {};

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const CachedMemory& memory) {
  v.type("CachedMemory", "Free blocks that the allocator kept.");
  v.field("bytes", memory.bytes);
  v.field("block_count", memory.blocks);
  v.field("largest_block_bytes", memory.largest);
}

template <typename Visitor>
void describe(Visitor& v, const OomCache& cache) {
  v.type("Cache", "Free memory of the allocator when the request failed, by whether the request could use it.");
  v.field("usable", cache.usable, "in segments of its stream, pool and kind");
  v.field("other_streams", cache.other_streams);
  v.field("other_pools", cache.other_pools);
  v.field("other_segment_kinds", cache.other_kinds,
          "for small blocks where the request is large, or the other way round");
  v.field("pending_free_bytes", cache.pending, "freed by the program, still used by another stream");
  v.field("releasable_in_private_pools_bytes", cache.whole_in_private_pools, "in segments that are free as a whole");
  v.field("releasable_in_default_pool_bytes", cache.whole_in_default_pool,
          "likewise; kept while a CUDA graph is captured");
}

template <typename Visitor>
void describe(Visitor& v, const ThreadInfo& thread, const TheRequest& /*tag*/) {
  v.type("RequestThread", "The thread of a request.");
  v.field("tid", thread.tid.value_or(0));
  v.field("name", known_text(thread.name));
}

template <typename Visitor>
void describe(Visitor& v, const OomFailure& failure, const TheRequest& tag) {
  const bool named_thread = failure.thread && failure.thread->tid;
  v.type("FailedRequest", "The request that failed.");
  v.field("bytes", failure.request.bytes);
  v.field("segment_bytes", when(failure.caching, failure.request.segment), "of a new segment for it");
  v.field("expandable", when(failure.caching, failure.request.expandable), "expandable segments were in force");
  v.field("stack", known(failure.stack));
  v.field("thread", in(named_thread ? failure.thread : std::nullopt, tag));
  v.field("stream", failure.stream, "handle; 0: the default stream");
  v.field("pool",
          when(failure.pool.has_value(),
               [&] {
                 return std::vector<std::uint64_t>{failure.pool->first, failure.pool->second};
               }),
          "id of a private pool");
}

template <typename Visitor>
void describe(Visitor& v, const OomLimit& limit) {
  v.type("MemoryLimit", "Between which values the limit lies that was met.");
  v.field("at_least_bytes", limit.at_least);
  v.field("below_bytes", limit.below);
}

template <typename Visitor>
void describe(Visitor& v, const OomFinding& finding, const OomFailure& failure) {
  v.type("Cause", "A cause of a failure, and how much memory it explains.");
  v.field("cause", named<kOomCauseNames>(finding.cause));
  v.field("bytes", finding.bytes);
  v.field("certain", finding.certain);
  v.field(
      "text", [&] { return evidence_text(failure, finding); }, "the numbers that show it");
}

template <typename Visitor>
void describe(Visitor& v, const LeakSite& site, const AtFailure& /*tag*/) {
  v.type("LeakAtFailure", "A leak at the time of a failure.");
  v.field("bytes_per_step", site.growth.bytes_per_step.value);
  v.field("held_bytes", site.held_bytes);
  v.field("held_block_count", site.held_blocks);
  v.field("stack", known(site.stack));
}

template <typename Visitor>
void describe(Visitor& v, const OomFailure& failure, const LeaksThen& /*tag*/) {
  v.type("LeakAnalysis", "Whether memory grew from step to step before the failure.");
  v.field("verdict", named<kLeakVerdictNames>(failure.leak_verdict));
  v.field("step_count", failure.step_count);
  v.field("leaked_bytes", failure.leaked, "of what leaked, alive at the failure");
  v.field("leaks", in(failure.leaks, AtFailure()), "fastest first");
}

template <typename Visitor>
void describe(Visitor& v, const OomFix& fix, const Explanation& explanation, const OomFailure& failure) {
  const bool blocks = fix.kind == OomFixKind::free_blocks;
  v.type("Fix", "A change that would have let the request succeed.");
  v.field("kind", named<kOomFixKindNames>(fix.kind));
  v.field("bytes", fix.bytes, "how much it frees, gives or asks for less");
  v.field("certain", fix.certain);
  v.field("block_count", when(blocks, fix.blocks), "free_blocks: how many to free");
  v.field("stack_block_count", when(blocks, fix.of_blocks), "free_blocks: of so many live blocks of the stack");
  v.field("stack", known(fix.stack), "of free_blocks");
  v.field(
      "text", [&] { return fix_text(failure, fix); }, "what to change");
  v.field(
      "check", [&] { return check_text(explanation, failure, fix); }, "how to verify it");
}

template <typename Visitor>
void describe(Visitor& v, const TopAllocation& allocation) {
  v.type("TopAllocation", "What held memory when the request failed.");
  v.field("bytes", allocation.bytes);
  v.field("block_count", allocation.blocks);
  v.field("share", allocation.share, "of allocated_bytes");
  v.field("oldest_at_ns", allocation.oldest_ns, "when the first of these blocks was allocated");
  v.field("newest_at_ns", allocation.newest_ns);
  v.part(holder(allocation.stack));
}

template <typename Visitor>
void describe(Visitor& v, const AdviceModule& module, const AtFailure& /*tag*/) {
  v.type("ModuleHeld", "A module, and what it held.");
  v.field("module", module.path);
  v.field("held_bytes", module.bytes);
}

template <typename Visitor>
void describe(Visitor& v, const OomAdvice& advice) {
  v.type("FailureAdvice", "A change of the program that would need less memory at the failure.");
  v.field("kind", named<kAdviceKindNames>(advice.kind));
  v.field("held_bytes", advice.avoidable_peak_bytes, "that it would not hold");
  v.field("confidence", named<kConfidenceNames>(advice.confidence), "the least certain of the blocks concerned");
  v.field("has_request", advice.has_request, "the request was for another one of these blocks");
  v.field("suffices", advice.suffices, "is at least what was missing; null: not known");
  v.field("block_count", advice.peak_blocks);
  v.field("modules", in(advice.modules, AtFailure()), "that are concerned, most bytes first");
  v.field("stack", known(advice.stack), "of most of these bytes");
}

template <typename Visitor>
void describe(Visitor& v, const OomFailure& failure, const Explanation& explanation) {
  v.type("Failure", "An out-of-memory error, or several equal ones.");
  v.field("device", to_string(failure.device));
  v.field(
      "message", [&] { return verdict_text(failure); }, "what failed and why, a sentence");
  v.field("cause", when(failure.cause.has_value(), [&] { return named<kOomCauseNames>(*failure.cause); }),
          "the main one; null: not known");
  v.field("count", failure.count, "equal errors");
  v.field("first_at_ns", failure.first_ns);
  v.field("last_at_ns", failure.last_ns);
  v.field("request", in(failure, TheRequest()));
  v.field("allocated_bytes", failure.allocated, "then");
  v.field("reserved_bytes", failure.reserved);
  v.field("cached_bytes", failure.cached, "reserved, and in no block");
  v.field("device_free_bytes", failure.device_free, "as the driver reported, or as of the last sample");
  v.field("device_free_sampled_at_ns", failure.sampled_at_ns,
          "time of the sample nearest to the failure, before or after it; null: the driver reported it at the failure");
  v.field("capacity_bytes", failure.capacity, "of the device");
  v.field("outside_pytorch_bytes", failure.outside, "in use on the device, but not reserved; known with a capacity");
  v.field("other_processes_bytes", failure.other_processes, "the part of it that other processes use");
  v.field("cache", failure.cache, "null: segments are not known");
  v.field("refused_by", named<kOomRefusedByNames>(failure.refused_by));
  v.field("limit", failure.limit, "of what the process may reserve, where that refused");
  v.field("missing_bytes", failure.missing, "that the driver, or at most the limit, was short of");
  v.field("causes", in(failure.findings, failure), "the main one first, what is not certain last");
  v.field("leak_analysis", in(failure, LeaksThen()));
  v.field("fixes", in(failure.fixes, explanation, failure), "certain ones first");
  v.field("top_allocations", failure.top_allocations, "most bytes first");
  v.field("other_stack_count", failure.other_allocations);
  v.field("other_stacks_bytes", failure.other_bytes);
  v.field("call_sites", failure.call_sites.call_sites, "the same by call site");
  v.field("other_call_site_count", failure.call_sites.other_call_sites);
  v.field("other_call_sites_bytes", failure.call_sites.other_bytes);
  v.field("unrecorded_bytes", failure.unrecorded, "allocated, in no recorded block");
  v.field_if(failure.of_batch.has_value(), "batch_bytes", failure.of_batch,
             "allocated for activations, inputs and temporaries, which grow with the batch");
  v.field_if(!failure.advice.empty(), "advice", failure.advice, "most bytes first");
}

template <typename Visitor>
void describe(Visitor& v, const DeviceSummary& device) {
  v.type("DevicePeaks", "Peaks of a device.");
  v.field("device", to_string(device.device));
  v.field("peak_allocated_bytes", device.peak_allocated_bytes);
  v.field("peak_allocated_at_ns", device.peak_allocated_at_ns);
  v.field("peak_reserved_bytes", device.peak_reserved_bytes);
  v.field("peak_reserved_at_ns", device.peak_reserved_at_ns);
}

template <typename Visitor>
void describe(Visitor& v, const Explanation& explanation) {
  v.type("Explanation", "Out-of-memory errors: cause, top allocations, possible fixes.");
  v.part(explanation.recording);
  v.field("capacity_bytes", explanation.capacity, "--capacity");
  v.field("out_of_memory_count", explanation.failed_requests);
  v.field("failures", in(explanation.failures, explanation), "latest first, equal ones as one");
  v.field("other_failure_count", explanation.other_failures);
  v.field("killed", explanation.kills);
  v.field("devices", explanation.devices);
}
TIDEMARK_DESCRIBED(Explanation);

}  // namespace tidemark
