// Failures on a device laid out by hand, one for each cause; the comments compute the expected values.
#include "analyze/oom/explain.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/units.h"
#include "unit/analyze/memory_layout.h"
#include "unit/analyze/training_loop.h"

namespace tidemark::testing {
namespace {

Explanation explain(const Store& store, const ExplainOptions& options = {}) {
  Symbols symbols(store.definitions);
  auto result = analyze_explain(store, symbols, options);
  EXPECT_TRUE(result.ok());
  return *result;
}

/// The latest failure, with a list of its findings and changes that tests compare.
struct Explained : OomFailure {
  explicit Explained(const Store& store, const ExplainOptions& options = {})
      : OomFailure(explain(store, options).failures.at(0)) {}

  [[nodiscard]] std::optional<std::uint64_t> found(OomCause wanted) const {
    for (const OomFinding& finding : findings) {
      if (finding.cause == wanted) return finding.bytes;
    }
    return std::nullopt;
  }
  [[nodiscard]] const OomFix* change(OomFixKind wanted) const {
    for (const OomFix& fix : fixes) {
      if (fix.kind == wanted) return &fix;
    }
    return nullptr;
  }
  [[nodiscard]] std::optional<std::uint64_t> bytes_of(OomFixKind wanted) const {
    const OomFix* found = change(wanted);
    return found == nullptr ? std::nullopt : std::optional(found->bytes);
  }
};

std::string function_of(const NamedStack& stack) {
  return stack.frames.empty() ? "" : stack.frames[stack.call_site].function;
}

class Explain : public ::testing::Test {
 protected:
  StackId stack(const char* function) { return names.stack({names.python(function, "train.py", 1)}); }
  Explained explained(const ExplainOptions& options = {}) { return Explained(gpu.finish(names.definitions), options); }

  Scenario names;
  MemoryLayout gpu;
};

TEST_F(Explain, Demand) {
  const StackId weights = stack("weights");
  gpu.reserve(0, 60 * kMiB);
  gpu.allocate(0, 60 * kMiB, 60 * kMiB, weights);
  gpu.fail(40 * kMiB, 20 * kMiB, stack("forward"));
  const Explained failure = explained();
  EXPECT_EQ(failure.cause, OomCause::demand);
  EXPECT_EQ(failure.findings.size(), 1U);
  EXPECT_EQ(failure.found(OomCause::demand), 20 * kMiB) << "40 asked for, 20 free, nothing cached";
  EXPECT_EQ(failure.refused_by, OomRefusedBy::device);
  EXPECT_EQ(failure.missing, 20 * kMiB);
  EXPECT_EQ(failure.allocated, 60 * kMiB);
  EXPECT_EQ(failure.reserved, 60 * kMiB);
  EXPECT_EQ(failure.cached, 0U);
  EXPECT_EQ(failure.outside, std::nullopt) << "what the device has is not in the file";
  EXPECT_EQ(failure.request.segment, 40 * kMiB);
  EXPECT_EQ(function_of(failure.stack), "forward");
  EXPECT_EQ(failure.stream, 0U);
  EXPECT_EQ(failure.pool, PoolId{});
  EXPECT_EQ(failure.last_ns, 3'000'000U);
  EXPECT_EQ(failure.leak_verdict, LeakVerdict::insufficient_data);
  ASSERT_EQ(failure.fixes.size(), 2U);
  EXPECT_EQ(failure.fixes[0].kind, OomFixKind::smaller_request);
  EXPECT_EQ(failure.fixes[0].bytes, 20 * kMiB) << "20 MiB would have been served";
  EXPECT_EQ(failure.fixes[1].kind, OomFixKind::free_blocks);
  EXPECT_EQ(failure.fixes[1].bytes, 60 * kMiB) << "the only block";
  EXPECT_EQ(function_of(failure.fixes[1].stack), "weights");
}

// Two segments of 30 MiB, 20 of each free; 25 are requested.
TEST_F(Explain, Fragmentation) {
  const StackId pins = stack("pin");
  for (const std::uint64_t at : {0 * kMiB, 100 * kMiB}) {
    gpu.reserve(at, 30 * kMiB);
    gpu.allocate(at, 10 * kMiB, 10 * kMiB, pins);
  }
  gpu.fail(25 * kMiB, 4 * kMiB);
  const Explained failure = explained();
  EXPECT_EQ(failure.cause, OomCause::fragmentation);
  EXPECT_EQ(failure.findings.size(), 1U);
  EXPECT_EQ(failure.found(OomCause::fragmentation), 40 * kMiB);
  EXPECT_EQ(failure.missing, 22 * kMiB) << "a segment of 26, of which 4 were there";
  EXPECT_EQ(failure.cache->usable.bytes, 40 * kMiB);
  EXPECT_EQ(failure.cache->usable.blocks, 2U);
  EXPECT_EQ(failure.cache->usable.largest, 20 * kMiB);
  ASSERT_EQ(failure.fixes.size(), 2U);
  EXPECT_EQ(failure.bytes_of(OomFixKind::smaller_request), 5 * kMiB) << "20 MiB would have been served";
  EXPECT_EQ(failure.bytes_of(OomFixKind::free_blocks), 10 * kMiB) << "either block makes 30 MiB in one piece";
  EXPECT_EQ(failure.fixes[1].blocks, 1U);
  EXPECT_EQ(failure.fixes[1].of_blocks, 2U);
}

// A free gap between two blocks of one stack: freeing the newer one joins it with the free memory after it.
TEST_F(Explain, AsFewBlocksAsDo) {
  const StackId pins = stack("pin");
  gpu.reserve(0, 100 * kMiB);
  gpu.allocate(0, 10 * kMiB, 10 * kMiB, pins);
  gpu.allocate(40 * kMiB, 5 * kMiB, 5 * kMiB, pins);
  gpu.allocate(80 * kMiB, 2 * kMiB, 2 * kMiB, pins);
  gpu.allocate(90 * kMiB, 10 * kMiB, 10 * kMiB, stack("last"));
  gpu.fail(60 * kMiB, 0);
  const Explained failure = explained();
  // Free: 10 to 40, 45 to 80, 82 to 90. Without the block at 80: 45 MiB in one piece. Without that at 40, too: 80.
  const OomFix* change = failure.change(OomFixKind::free_blocks);
  ASSERT_NE(change, nullptr);
  EXPECT_EQ(change->bytes, 7 * kMiB);
  EXPECT_EQ(change->blocks, 2U);
  EXPECT_EQ(change->of_blocks, 3U);
  EXPECT_EQ(function_of(change->stack), "pin");
  EXPECT_TRUE(change->certain);
}

// 50 of 60 MiB free from 10 on: handles of 20 MiB begin at 20 and 40.
TEST_F(Explain, ExpandableSegmentsWouldGiveBackWholeHandles) {
  for (const std::uint64_t at : {0 * kMiB, 100 * kMiB}) {
    gpu.reserve(at, 60 * kMiB);
    gpu.allocate(at, 10 * kMiB, 10 * kMiB);
  }
  gpu.fail(75 * kMiB, 10 * kMiB);
  const Explained failure = explained();
  const OomFix* change = failure.change(OomFixKind::expandable);
  ASSERT_NE(change, nullptr);
  EXPECT_EQ(change->bytes, 80 * kMiB);
  EXPECT_FALSE(change->certain);
  EXPECT_EQ(failure.fixes.back().kind, OomFixKind::expandable) << "what is certain comes first";
}

TEST_F(Explain, ExpandableSegmentsAskForHandles) {
  gpu.reserve(0, 40 * kMiB, true);
  gpu.allocate(0, 21 * kMiB, 21 * kMiB, stack("first"));
  gpu.fail(25 * kMiB, 30 * kMiB);
  const Explained failure = explained();
  EXPECT_TRUE(failure.request.expandable);
  EXPECT_EQ(failure.request.segment, 26 * kMiB) << "what PyTorch's message says";
  EXPECT_EQ(failure.request.driver, 40 * kMiB) << "two handles";
  EXPECT_EQ(failure.missing, 10 * kMiB);
  EXPECT_EQ(failure.found(OomCause::fragmentation), 19 * kMiB);
  EXPECT_EQ(failure.bytes_of(OomFixKind::free_blocks), 21 * kMiB);
  EXPECT_EQ(failure.bytes_of(OomFixKind::smaller_request), 5 * kMiB) << "one handle is there";
}

TEST_F(Explain, CachedForAnotherStream) {
  gpu.reserve(0, 40 * kMiB, false, {1, 0});
  gpu.allocate(0, 10 * kMiB, 10 * kMiB, stack("other"), {1, 0});
  gpu.fail(30 * kMiB, 2 * kMiB);
  const Explained failure = explained();
  EXPECT_EQ(failure.cause, OomCause::fragmentation);
  EXPECT_EQ(failure.cache->usable.blocks, 0U);
  EXPECT_EQ(failure.cache->other_streams.bytes, 30 * kMiB);
  EXPECT_EQ(failure.bytes_of(OomFixKind::same_stream), 30 * kMiB);
  EXPECT_EQ(failure.bytes_of(OomFixKind::free_blocks), 10 * kMiB) << "then the whole segment goes back to the driver";
}

TEST_F(Explain, CachedByAPrivatePool) {
  gpu.reserve(0, 40 * kMiB, false, {0, 1});
  gpu.reserve(100 * kMiB, 2 * kMiB);
  gpu.allocate(100 * kMiB, 512 * 1024, 512 * 1024);
  gpu.fail(30 * kMiB, 2 * kMiB);
  const Explained failure = explained();
  EXPECT_EQ(failure.cause, OomCause::fragmentation);
  EXPECT_EQ(failure.found(OomCause::fragmentation), 41 * kMiB + 512 * 1024);
  EXPECT_EQ(failure.cache->other_pools.bytes, 40 * kMiB);
  EXPECT_EQ(failure.cache->other_kinds.bytes, kMiB + 512 * 1024) << "of the small segment";
  EXPECT_EQ(failure.cache->whole_in_private_pools, 40 * kMiB);
  EXPECT_EQ(failure.bytes_of(OomFixKind::empty_private_pool), 40 * kMiB);
}

// Wholly free segments of the default pool are given back before the request fails, except during a capture.
TEST_F(Explain, CachedDuringACapture) {
  gpu.reserve(0, 40 * kMiB);
  gpu.reserve(100 * kMiB, 20 * kMiB);
  gpu.allocate(100 * kMiB, 20 * kMiB, 20 * kMiB, stack("kept"));
  gpu.fail(30 * kMiB, 2 * kMiB, {}, {1, 1});
  const Explained failure = explained();
  EXPECT_EQ(failure.pool, (PoolId{0, 1}));
  EXPECT_EQ(failure.stream, 7U);
  EXPECT_EQ(failure.cause, OomCause::fragmentation);
  EXPECT_EQ(failure.cache->other_pools.bytes, 40 * kMiB);
  EXPECT_EQ(failure.bytes_of(OomFixKind::empty_cache_before), 40 * kMiB);
  EXPECT_EQ(failure.bytes_of(OomFixKind::free_blocks), std::nullopt) << "the driver would not have got it back";
}

TEST_F(Explain, PendingMemoryIsNotCached) {
  gpu.reserve(0, 40 * kMiB);
  gpu.allocate(0, 10 * kMiB, 10 * kMiB);
  const SlotId pending = gpu.allocate(10 * kMiB, 30 * kMiB, 30 * kMiB);
  gpu.free(pending, 30 * kMiB, true);
  gpu.fail(30 * kMiB, 2 * kMiB);
  const Explained failure = explained();
  EXPECT_EQ(failure.cache->pending, 30 * kMiB);
  EXPECT_EQ(failure.cached, 0U);
  EXPECT_EQ(failure.cause, OomCause::demand);
  EXPECT_EQ(failure.found(OomCause::demand), 28 * kMiB);
}

TEST_F(Explain, Limit) {
  gpu.reserve(0, 50 * kMiB);
  gpu.allocate(0, 50 * kMiB, 50 * kMiB);
  gpu.reserve(100 * kMiB, 10 * kMiB);
  gpu.release(100 * kMiB, 10 * kMiB);
  gpu.fail(20 * kMiB, kGiB);
  const Explained failure = explained();
  EXPECT_EQ(failure.cause, OomCause::limit);
  EXPECT_EQ(failure.refused_by, OomRefusedBy::limit);
  EXPECT_EQ(failure.limit->at_least, 60 * kMiB) << "so much was reserved before";
  EXPECT_EQ(failure.limit->below, 70 * kMiB);
  EXPECT_EQ(failure.missing, 10 * kMiB) << "at most";
  EXPECT_EQ(failure.bytes_of(OomFixKind::raise_limit), 10 * kMiB);
  EXPECT_EQ(failure.bytes_of(OomFixKind::smaller_request), 10 * kMiB) << "10 MiB more were reserved before";
}

TEST_F(Explain, LimitThatWasLoweredMeanwhile) {
  gpu.reserve(0, 50 * kMiB);
  gpu.allocate(0, 50 * kMiB, 50 * kMiB);
  gpu.reserve(100 * kMiB, 80 * kMiB);
  gpu.release(100 * kMiB, 80 * kMiB);
  gpu.fail(20 * kMiB, kGiB);
  const Explained failure = explained();
  EXPECT_EQ(failure.limit->at_least, 50 * kMiB);
  EXPECT_EQ(failure.limit->below, 70 * kMiB);
}

// 30 of 60 MiB are free under a limit of at least 60: packed, 20 more would have fitted.
TEST_F(Explain, FragmentationUnderALimit) {
  gpu.reserve(0, 60 * kMiB);
  for (const std::uint64_t at : {0 * kMiB, 20 * kMiB, 40 * kMiB}) gpu.allocate(at, 10 * kMiB, 10 * kMiB);
  gpu.fail(20 * kMiB, kGiB);
  const Explained failure = explained();
  EXPECT_EQ(failure.cause, OomCause::limit);
  EXPECT_EQ(failure.found(OomCause::fragmentation), 30 * kMiB);
  EXPECT_EQ(failure.findings.size(), 2U);
}

TEST_F(Explain, DriverReservesMemory) {
  gpu.reserve(0, 60 * kMiB);
  gpu.allocate(0, 60 * kMiB, 60 * kMiB);
  gpu.fail(20 * kMiB, 21 * kMiB);
  const Explained failure = explained();
  EXPECT_EQ(failure.refused_by, OomRefusedBy::unknown);
  EXPECT_EQ(failure.cause, std::nullopt);
  EXPECT_EQ(failure.limit.has_value(), false);
}

// 60 MiB were reserved once. Now 10 are, and 20 are free: other processes took 30, all of the missing memory.
TEST_F(Explain, OtherProcess) {
  gpu.reserve(0, 10 * kMiB);
  gpu.allocate(0, 10 * kMiB, 10 * kMiB);
  gpu.reserve(100 * kMiB, 50 * kMiB);
  gpu.release(100 * kMiB, 50 * kMiB);
  gpu.fail(50 * kMiB, 20 * kMiB);
  const Store store = gpu.finish();
  const Explained failure(store);
  EXPECT_EQ(failure.cause, OomCause::other_process);
  EXPECT_EQ(failure.outside_grew, 30 * kMiB);
  EXPECT_EQ(failure.found(OomCause::other_process), 30 * kMiB);
  EXPECT_EQ(failure.found(OomCause::demand), 30 * kMiB);
  EXPECT_EQ(failure.outside, std::nullopt);
  EXPECT_EQ(failure.bytes_of(OomFixKind::free_device), 30 * kMiB);

  ExplainOptions options;
  options.capacity = 100 * kMiB;
  const Explained known(store, options);
  EXPECT_EQ(known.outside, 70 * kMiB);
  EXPECT_EQ(known.found(OomCause::other_process), 70 * kMiB);
}

TEST_F(Explain, WhatAContextTakesIsNoOtherProcess) {
  gpu.reserve(0, 900 * kMiB);
  gpu.allocate(0, 900 * kMiB, 900 * kMiB);
  gpu.fail(40 * kMiB, 20 * kMiB);
  ExplainOptions options;
  options.capacity = 1000 * kMiB;
  const Explained failure = explained(options);
  EXPECT_EQ(failure.outside, 80 * kMiB);
  EXPECT_EQ(failure.cause, OomCause::demand);
  EXPECT_EQ(failure.found(OomCause::other_process), std::nullopt);
}

// By the rules 20 MiB fit: the request was of a pool that older files do not name.
TEST_F(Explain, APieceThatFitsIsAContradiction) {
  gpu.reserve(0, 60 * kMiB);
  gpu.allocate(0, 10 * kMiB, 10 * kMiB, stack("first"));
  gpu.fail(20 * kMiB, 19 * kMiB);
  const Explained failure = explained();
  EXPECT_TRUE(failure.fitting_block);
  EXPECT_EQ(failure.bytes_of(OomFixKind::free_blocks), std::nullopt);
}

// With max_split_size a block of that size serves no smaller request.
TEST_F(Explain, OversizeBlocksAreNotSplit) {
  gpu.reserve(0, 60 * kMiB);
  gpu.allocate(0, 10 * kMiB, 10 * kMiB);
  gpu.fail(20 * kMiB, 0);
  Store store = gpu.finish();
  store.source.allocator_settings.emplace().max_split_size = 30 * kMiB;
  const Explained failure(store);
  EXPECT_FALSE(failure.fitting_block);
  EXPECT_EQ(failure.cause, OomCause::fragmentation);
}

TEST_F(Explain, HoldersAndEqualFailures) {
  const StackId weights = stack("weights");
  const StackId forward = stack("forward");
  gpu.reserve(0, 100 * kMiB);
  gpu.allocate(0, 20 * kMiB, 20 * kMiB, forward);              // 2 ms
  gpu.allocate(20 * kMiB, 30 * kMiB, 30 * kMiB, weights);      // 3 ms
  gpu.allocate(50 * kMiB, 40 * kMiB, 40 * kMiB - 1, forward);  // 4 ms
  gpu.fail(80 * kMiB, 0, forward);
  gpu.fail(40 * kMiB, 0, forward);
  gpu.fail(40 * kMiB, 0, forward);
  const Store store = gpu.finish(names.definitions);
  ExplainOptions options;
  options.top = 1;
  options.failures = 1;
  const Explanation explanation = explain(store, options);
  EXPECT_EQ(explanation.failed_requests, 3U);
  EXPECT_EQ(explanation.other_failures, 1U);
  ASSERT_EQ(explanation.failures.size(), 1U);
  const OomFailure& failure = explanation.failures[0];
  EXPECT_EQ(failure.request.bytes, 40 * kMiB);
  EXPECT_EQ(failure.count, 2U);
  EXPECT_EQ(failure.first_ns, 6'000'000U);
  EXPECT_EQ(failure.last_ns, 7'000'000U);
  ASSERT_EQ(failure.top_allocations.size(), 1U);
  EXPECT_EQ(failure.other_allocations, 1U);
  EXPECT_EQ(failure.other_bytes, 30 * kMiB);
  const TopAllocation& allocation = failure.top_allocations[0];
  EXPECT_EQ(allocation.bytes, 60 * kMiB);
  EXPECT_EQ(allocation.blocks, 2U);
  EXPECT_DOUBLE_EQ(allocation.share, 60.0 / 90);
  EXPECT_EQ(allocation.oldest_ns, 2'000'000U);
  EXPECT_EQ(allocation.newest_ns, 4'000'000U);
  options.failures = 0;
  EXPECT_EQ(explain(store, options).failures.size(), 2U);
}

// Nothing in a damaged file makes sums wrap around.
TEST_F(Explain, ImpossibleSizes) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  gpu.reserve(0, 60 * kMiB);
  gpu.allocate(0, 10 * kMiB, 10 * kMiB, stack("first"));
  gpu.fail(kMax, kMax);
  gpu.fail(kMax - 1, 1);
  gpu.fail(1, kMax);
  ExplainOptions options;
  options.failures = 0;
  options.capacity = 1;
  const Explanation explanation = explain(gpu.finish(names.definitions), options);
  ASSERT_EQ(explanation.failures.size(), 3U);
  EXPECT_EQ(explanation.failures[0].refused_by, OomRefusedBy::limit);
  EXPECT_EQ(explanation.failures[1].missing, kMax - 1) << "the whole of it, but for one byte";
  EXPECT_EQ(explanation.failures[2].cause, OomCause::demand);
  EXPECT_EQ(explanation.failures[2].findings[0].bytes, kMax - 1) << "of a device of one byte";
}

TEST_F(Explain, NoFailure) {
  gpu.reserve(0, 60 * kMiB);
  const Explanation explanation = explain(gpu.finish());
  EXPECT_TRUE(explanation.failures.empty());
  ASSERT_EQ(explanation.devices.size(), 1U);
  EXPECT_EQ(explanation.devices[0].peak_reserved_bytes, 60 * kMiB);
}

// Totals, and nothing of segments or the device.
TEST(ExplainRecording, ExplainsWithAvailableData) {
  Scenario scenario;
  scenario.totals(kGpu, 0, 80 * kMiB);
  scenario.allocate(10, "weights", 40 * kMiB, kGpu);
  scenario.out_of_memory(20, 20 * kMiB, kGpu);
  scenario.out_of_memory(30, 60 * kMiB, kGpu);
  const Store store = scenario.store();
  const Explanation explanation = explain(store);
  ASSERT_EQ(explanation.failures.size(), 2U);
  const OomFailure& larger = explanation.failures[0];
  EXPECT_EQ(larger.cause, std::nullopt) << "the device may have been full, or a limit reached";
  EXPECT_EQ(larger.cached, 40 * kMiB);
  EXPECT_EQ(larger.cache.has_value(), false);
  EXPECT_EQ(larger.device_free, std::nullopt);
  EXPECT_EQ(larger.missing, std::nullopt);
  EXPECT_TRUE(larger.fixes.empty());
  const OomFailure& smaller = explanation.failures[1];
  EXPECT_EQ(smaller.cause, OomCause::fragmentation) << "40 MiB were reserved and in no block, whatever the device had";

  ExplainOptions options;
  options.capacity = 90 * kMiB;
  const Explained known(store, options);
  EXPECT_EQ(known.cause, OomCause::demand);
  EXPECT_EQ(known.found(OomCause::demand), 10 * kMiB) << "40 in blocks and 60 asked for, of 90";
}

// 1000 MiB outside PyTorch when the sample was taken; PyTorch reserved 2000 MiB more until the request failed.
Store sampled_recording(std::uint64_t total_bytes, std::uint64_t request_bytes = 1000 * kMiB) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, total_bytes);
  scenario.totals(kGpu, 0, 3000 * kMiB);
  scenario.allocate(10, "weights", 2900 * kMiB, kGpu);
  scenario.used(15, gpu, 4000 * kMiB);
  scenario.totals(kGpu, 2900 * kMiB, 5000 * kMiB);
  scenario.allocate(20, "activations", 2000 * kMiB, kGpu);
  scenario.out_of_memory(30, request_bytes, kGpu);
  scenario.used(40, gpu, 1 * kMiB);
  return scenario.store();
}

TEST(ExplainRecording, TakesFreeMemoryFromTheLastSampleBefore) {
  const Explained full(sampled_recording(6500 * kMiB));
  EXPECT_EQ(full.capacity, 6500 * kMiB);
  EXPECT_EQ(full.sampled_at_ns, 15U);
  EXPECT_EQ(full.outside, 1000 * kMiB);
  EXPECT_EQ(full.device_free, 500 * kMiB);
  EXPECT_EQ(full.refused_by, OomRefusedBy::device);
  EXPECT_EQ(full.missing, 500 * kMiB);
  EXPECT_EQ(full.cause, OomCause::other_process) << "more than a tenth of the device, and twice what was missing";
  EXPECT_EQ(full.found(OomCause::demand), 400 * kMiB) << "100 MiB were cached";

  const Explained limited(sampled_recording(80'000 * kMiB));
  EXPECT_EQ(limited.device_free, 74'000 * kMiB);
  EXPECT_EQ(limited.refused_by, OomRefusedBy::limit);
  ASSERT_TRUE(limited.limit);
  EXPECT_EQ(limited.limit->at_least, 5000 * kMiB) << "reserved before";
  EXPECT_EQ(limited.missing, 1000 * kMiB);

  const Explained close(sampled_recording(6900 * kMiB));  // 900 MiB free for 1000: within the error of a sample
  EXPECT_EQ(close.refused_by, OomRefusedBy::unknown);
  const Explained exhausted(
      sampled_recording(6000 * kMiB, 64 * kMiB));  // nothing free: a sample is exact enough for that
  EXPECT_EQ(exhausted.device_free, 0U);
  EXPECT_EQ(exhausted.refused_by, OomRefusedBy::device);
  EXPECT_EQ(exhausted.missing, 64 * kMiB);
}

// The recorder takes a sample right after the failure. Where it agrees with the one before, the free memory is certain.
TEST(ExplainRecording, SamplesOnBothSidesAreExact) {
  constexpr std::uint64_t kMs = 1'000'000;
  const auto explained = [](std::uint64_t outside_after, std::uint64_t reserved_after = 5000 * kMiB) {
    Scenario scenario;
    const SampledDeviceId gpu = scenario.sampled_gpu(0, 6900 * kMiB);
    scenario.totals(kGpu, 0, 5000 * kMiB);
    scenario.allocate(10 * kMs, "weights", 4900 * kMiB, kGpu);
    scenario.used(60 * kMs, gpu, 6000 * kMiB);
    scenario.out_of_memory(100 * kMs, 1000 * kMiB, kGpu);
    scenario.used(103 * kMs, gpu, reserved_after + outside_after);
    scenario.totals(kGpu, 4900 * kMiB, reserved_after);
    scenario.allocate(105 * kMs, "more", kMiB, kGpu);
    return Explained(scenario.store());
  };
  const Explained same = explained(1000 * kMiB);
  EXPECT_EQ(same.sampled_at_ns, 103 * kMs);
  EXPECT_EQ(same.device_free, 900 * kMiB);
  EXPECT_EQ(same.refused_by, OomRefusedBy::device) << "900 MiB were free for 1000, and both samples say so";
  EXPECT_EQ(same.missing, 100 * kMiB);

  const Explained grown = explained(1010 * kMiB);
  EXPECT_EQ(grown.device_free, 890 * kMiB) << "the nearer sample";
  EXPECT_EQ(grown.refused_by, OomRefusedBy::device) << "110 MiB are missing, and the samples differ by 10";

  const Explained loaded = explained(1200 * kMiB);
  EXPECT_EQ(loaded.sampled_at_ns, 103 * kMs) << "libraries were loaded since the first sample";
  EXPECT_EQ(loaded.device_free, 700 * kMiB);
  EXPECT_EQ(loaded.refused_by, OomRefusedBy::device) << "300 MiB are missing, and the samples differ by 200";

  const Explained ended = explained(800 * kMiB);
  EXPECT_EQ(ended.sampled_at_ns, 60 * kMs) << "less is used: perhaps the process ended";
  EXPECT_EQ(ended.refused_by, OomRefusedBy::unknown);

  const Explained released = explained(1000 * kMiB, 4000 * kMiB);
  EXPECT_EQ(released.sampled_at_ns, 60 * kMs) << "reserved memory changed right after the second sample";
}

// 1000 MiB outside PyTorch of 6500, 500 missing. The list of processes shows whose they are.
TEST(ExplainRecording, OtherProcessesAreThoseOfTheList) {
  const auto process = [](ProcessKind kind, std::optional<std::uint64_t> bytes) {
    return SampledProcess{7, kind, bytes, "python"};
  };
  const auto explained = [](std::vector<SampledProcess> processes) {
    Scenario scenario;
    const SampledDeviceId gpu = scenario.sampled_gpu(0, 6500 * kMiB);
    scenario.totals(kGpu, 0, 5000 * kMiB);
    scenario.allocate(10, "weights", 4900 * kMiB, kGpu);
    scenario.processes(14, gpu, std::move(processes));
    scenario.used(15, gpu, 6000 * kMiB);
    scenario.out_of_memory(30, 1000 * kMiB, kGpu);
    return Explained(scenario.store());
  };
  const Explained alone = explained({process(ProcessKind::recorded, 6000 * kMiB)});
  EXPECT_EQ(alone.outside, 1000 * kMiB);
  EXPECT_EQ(alone.other_processes, 0U);
  EXPECT_EQ(alone.cause, OomCause::demand) << "the context of the process itself is no other process";
  EXPECT_EQ(alone.bytes_of(OomFixKind::free_device), std::nullopt);

  const Explained two =
      explained({process(ProcessKind::recorded, 5300 * kMiB), process(ProcessKind::other, 700 * kMiB)});
  EXPECT_EQ(two.other_processes, 700 * kMiB);
  EXPECT_EQ(two.cause, OomCause::other_process);
  EXPECT_EQ(two.found(OomCause::other_process), 700 * kMiB);

  const Explained small =
      explained({process(ProcessKind::recorded, 5900 * kMiB), process(ProcessKind::other, 100 * kMiB)});
  EXPECT_EQ(small.cause, OomCause::demand) << "less than half of the missing memory";
  const Explained hidden = explained({process(ProcessKind::other_namespace, 6000 * kMiB)});
  EXPECT_EQ(hidden.other_processes, 0U) << "the only process of a container that holds enough is the recorded one";
  EXPECT_EQ(hidden.cause, OomCause::demand);
  const Explained ambiguous = explained(
      {process(ProcessKind::other_namespace, 5500 * kMiB), process(ProcessKind::other_namespace, 5400 * kMiB)});
  EXPECT_EQ(ambiguous.other_processes, std::nullopt) << "either may be";
  EXPECT_EQ(ambiguous.cause, OomCause::other_process);
}

// Three requests at three places, latest first: each uses the last sample before it with used bytes, and PyTorch's
// reserved bytes of that time, unless a slow call was in progress.
TEST(ExplainRecording, EachFailureHasItsOwnSample) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 6000 * kMiB);
  scenario.totals(kGpu, 0, 1000 * kMiB);
  scenario.allocate(10, "a", 900 * kMiB, kGpu);
  scenario.used(15, gpu, 1400 * kMiB);
  scenario.out_of_memory(20, 5001 * kMiB, kGpu);
  scenario.totals(kGpu, 900 * kMiB, 3000 * kMiB);
  scenario.allocate(30, "b", 2000 * kMiB, kGpu);
  scenario.used(35, gpu, 3700 * kMiB);
  scenario.used(37, gpu, std::nullopt);
  scenario.out_of_memory(40, 5002 * kMiB, kGpu);
  scenario.used(50, gpu, 3500 * kMiB);
  scenario.slow_call(51, 2);
  scenario.out_of_memory(60, 5003 * kMiB, kGpu);
  const Store store = scenario.store();
  Symbols symbols(store.definitions);
  const auto explained = analyze_explain(store, symbols, {});
  ASSERT_TRUE(explained.ok());
  ASSERT_EQ(explained->failures.size(), 3U);
  EXPECT_EQ(explained->failures[0].sampled_at_ns, std::nullopt);
  EXPECT_EQ(explained->failures[0].device_free, std::nullopt);
  EXPECT_EQ(explained->failures[1].sampled_at_ns, 35U);
  EXPECT_EQ(explained->failures[1].device_free, (6000 - 3000 - 700) * kMiB);
  EXPECT_EQ(explained->failures[2].sampled_at_ns, 15U);
  EXPECT_EQ(explained->failures[2].device_free, (6000 - 1000 - 400) * kMiB);
}

// The second sample was read while the allocator asked for a segment of 2000 MiB, whose event came a microsecond later:
// 400 MiB are outside PyTorch, not 2400.
TEST(ExplainRecording, TakesNoSampleFromTheMiddleOfAnAllocatorCall) {
  constexpr std::uint64_t kMs = 1'000'000;
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 6000 * kMiB);
  scenario.totals(kGpu, 0, 1000 * kMiB);
  scenario.allocate(10 * kMs, "a", 900 * kMiB, kGpu);
  scenario.used(60 * kMs, gpu, 1400 * kMiB);
  scenario.used(160 * kMs, gpu, 3400 * kMiB);
  scenario.totals(kGpu, 900 * kMiB, 3000 * kMiB);
  scenario.allocate(160 * kMs + 1000, "b", 2000 * kMiB, kGpu);
  scenario.out_of_memory(162 * kMs, 5000 * kMiB, kGpu);
  const Explained explained(scenario.store());
  EXPECT_EQ(explained.sampled_at_ns, 60 * kMs);
  EXPECT_EQ(explained.outside, 400 * kMiB);
  EXPECT_EQ(explained.device_free, (6000 - 3000 - 400) * kMiB);
}

TEST(ExplainRecording, Cpu) {
  Scenario scenario;
  scenario.allocate(10, "batch", 40 * kMiB, kCpu);
  scenario.out_of_memory(20, kGiB, kCpu);
  const Explained failure(scenario.store());
  EXPECT_FALSE(failure.caching);
  EXPECT_EQ(failure.allocated, 40 * kMiB);
  EXPECT_EQ(failure.cause, std::nullopt);
  EXPECT_EQ(failure.top_allocations.size(), 1U);
}

// A loop that keeps 4 KiB a step, then fails; events after the failure must not count.
TEST(ExplainRecording, LeakUpToTheFailure) {
  constexpr int kSteps = 160;
  TrainingLoop loop(TrainingLoop::Stacks::named_optimizer);
  loop.run(kSteps, [&](int step) { loop.allocate("kept" + std::to_string(step), 4096, "track"); });
  const std::uint64_t end_ns = loop.scenario.events.back().time_ns;
  loop.scenario.out_of_memory(end_ns + 1, 2 * kMiB, kGpu);
  // 2 MiB requested is more than 160 * 4 KiB: no evidence that the leak caused the failure.
  const Explained large(loop.scenario.store());
  EXPECT_EQ(large.leak_verdict, LeakVerdict::leak);
  EXPECT_EQ(large.found(OomCause::leak), std::nullopt);
  ASSERT_EQ(large.leaks.size(), 1U);
  EXPECT_EQ(function_of(large.leaks[0].stack), "track");

  TrainingLoop healthy(TrainingLoop::Stacks::named_optimizer);
  healthy.run(kSteps, [&](int step) {
    if (step == kSteps / 2) healthy.scenario.out_of_memory(healthy.scenario.events.back().time_ns, 1, kGpu);
    if (step > kSteps / 2) healthy.allocate("kept" + std::to_string(step), 4096, "track");
  });
  const Explained before(healthy.scenario.store());
  EXPECT_EQ(before.leak_verdict, LeakVerdict::no_leak) << "the leak began after the failure";
}

// 1000 MiB of weights, 800 of activations, 180 cached in pieces and 20 free: enough for this request of 190, but the
// gradients and the optimizer's states of the first step are still to come.
TEST(ExplainRecording, LittleCacheIsNoCauseInAFirstStep) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 2000 * kMiB);
  scenario.totals(kGpu, 0, 1980 * kMiB);
  scenario.allocate(1, "weights", 1000 * kMiB, kGpu);
  scenario.allocate(2, "activations", 800 * kMiB, kGpu);
  scenario.used(10'000'000, gpu, 1980 * kMiB);
  scenario.out_of_memory(20'000'000, 190 * kMiB, kGpu);
  scenario.used(20'000'001, gpu, 1980 * kMiB);
  ModelTensor weights;
  weights.device = kGpu;
  weights.requires_grad = true;
  scenario.definitions.tensors.push_back(weights);
  const Store store = scenario.store();
  Attribution attribution;
  attribution.blocks.resize(2);
  attribution.blocks[0].category = Category::parameter;
  attribution.blocks[1].category = Category::activation;
  attribution.tensors.push_back({BlockId{0}, 0, {}});
  attribution.out_of_memory.resize(1);
  attribution.out_of_memory[0].phase = Phase::forward;
  attribution.out_of_memory[0].category = Category::activation;
  ExplainOptions options;
  options.attribution = &attribution;
  const Explained first(store, options);
  EXPECT_TRUE(first.first_step);
  EXPECT_EQ(first.trainable_bytes, 1000 * kMiB);
  EXPECT_EQ(first.gradients_to_come, 1000 * kMiB);
  EXPECT_EQ(first.cause, OomCause::demand);
  EXPECT_EQ(first.found(OomCause::fragmentation), std::nullopt);

  attribution.phases = {{Phase::forward, 0, 1}, {Phase::optimizer, 1, 1}};  // a step was complete before
  const Explained later(store, options);
  EXPECT_FALSE(later.first_step);
  EXPECT_EQ(later.cause, OomCause::fragmentation);
}

// The missing bytes are unknown: at most 160 × 4 KiB leaked, which is a cause only if no more was requested.
TEST(ExplainRecording, LeakOnTheCpu) {
  for (const bool is_less : {true, false}) {
    TrainingLoop loop(TrainingLoop::Stacks::named_optimizer, kCpu);
    loop.run(160, [&](int step) { loop.allocate("kept" + std::to_string(step), 4096, "track"); });
    loop.scenario.out_of_memory(loop.scenario.events.back().time_ns + 1, is_less ? 400 * kKiB : kMiB, kCpu);
    const Explained failure(loop.scenario.store());
    EXPECT_EQ(failure.leak_verdict, LeakVerdict::leak);
    EXPECT_EQ(failure.found(OomCause::leak).has_value(), is_less);
    EXPECT_EQ(failure.missing, std::nullopt);
  }
}

}  // namespace
}  // namespace tidemark::testing
