#include "analyze/usage/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "analyze/common/profile.h"
#include "analyze/usage/compare.h"
#include "analyze/usage/temporary.h"
#include "base/units.h"
#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using testing::kCpu;
using testing::kGpu;
using testing::Scenario;

constexpr const char* kTorch = "/usr/lib/python3/dist-packages/torch/nn/functional.py";

TEST(Summary, PutsStacksOfOnePlaceTogether) {
  Scenario scenario;
  const LocationId first_caller = scenario.python("main", "train.py", 1);
  const LocationId second_caller = scenario.python("main", "train.py", 2);
  const LocationId forward = scenario.python("forward", "model.py", 30);
  const LocationId linear = scenario.python("linear", kTorch, 1848);
  scenario.allocate(1, "a", 300, kCpu, scenario.stack({first_caller, forward, linear}));
  scenario.allocate(2, "b", 200, kCpu, scenario.stack({second_caller, forward, linear}));
  scenario.allocate(3, "c", 400, kCpu, scenario.stack({first_caller}));
  scenario.allocate(4, "d", 100);
  const Overview overview = scenario.overview();
  Symbols symbols(overview.definitions);
  const auto summary = analyze_summary(overview, symbols, {});
  ASSERT_TRUE(summary.ok());
  ASSERT_EQ(summary->devices.size(), 1U);
  const std::vector<CallSite>& call_sites = summary->devices[0].call_sites;
  ASSERT_EQ(call_sites.size(), 3U);
  EXPECT_EQ(call_sites[0].bytes, 500U);
  EXPECT_EQ(call_sites[0].blocks, 2U);
  EXPECT_EQ(call_sites[0].stacks, 2U);
  EXPECT_DOUBLE_EQ(call_sites[0].share, 0.5);
  EXPECT_EQ(call_sites[0].stack.frames[call_sites[0].stack.call_site].function, "forward");
  EXPECT_EQ(call_sites[0].stack.frames[call_sites[0].stack.leaf.value()].function, "linear");
  EXPECT_EQ(call_sites[1].bytes, 400U);
  EXPECT_EQ(call_sites[1].stack.leaf, std::nullopt);
  EXPECT_TRUE(call_sites[2].stack.frames.empty());
}

TEST(Summary, AddsUpWhatItDoesNotList) {
  Scenario scenario;
  for (std::uint32_t line = 1; line <= 4; ++line) {
    scenario.allocate(line, std::to_string(line), std::uint64_t{100} * line, kCpu,
                      scenario.stack({scenario.python("f", "f.py", line)}));
  }
  const Overview overview = scenario.overview();
  Symbols symbols(overview.definitions);
  const auto summary = analyze_summary(overview, symbols, {std::nullopt, 2});
  ASSERT_EQ(summary->devices[0].call_sites.size(), 2U);
  EXPECT_EQ(summary->devices[0].other_call_sites, 2U);
  EXPECT_EQ(summary->devices[0].other_bytes, 300U);
}

// Three blocks of 2^63 bytes one after another: 3 * 2^63 does not fit 64 bits.
TEST(Summary, TotalsOverTimeDoNotWrapAround) {
  Scenario scenario;
  for (std::uint64_t number = 0; number < 3; ++number) {
    scenario.allocate(2 * number, "a", std::uint64_t{1} << 63, kCpu);
    scenario.free(2 * number + 1, "a");
  }
  const Overview overview = scenario.overview();
  Symbols symbols(overview.definitions);
  const auto summary = analyze_summary(overview, symbols, {});
  EXPECT_EQ(summary->devices[0].totals.total_bytes_allocated, ~std::uint64_t{0});
  const Store store = scenario.store();
  const auto temporary = analyze_temporary(store, symbols, {});
  EXPECT_EQ(temporary->devices[0].bytes, ~std::uint64_t{0});
  EXPECT_EQ(temporary->devices[0].share, std::nullopt) << "of what is not known";
  const auto profile = analyze_profile(store, {});
  EXPECT_EQ(profile->front().stacks[0].allocated_bytes, ~std::uint64_t{0});
  const ComparedRecording compared = reduce_for_compare(scenario.store());
  EXPECT_EQ(compared.stacks[0].traffic_bytes, ~std::uint64_t{0});
}

TEST(Compare, ChangesDoNotWrapAround) {
  EXPECT_EQ((ComparedValue{0, ~std::uint64_t{0}}.change()), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ((ComparedValue{~std::uint64_t{0}, 5}.change()), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ((ComparedValue{7, 5}.change()), -2);
}

TEST(Summary, ExplainsTheLatestOutOfMemoryError) {
  Scenario scenario;
  scenario.totals(kGpu, 0, 8 * kMiB);
  scenario.allocate(1, "a", 6 * kMiB, kGpu);
  scenario.out_of_memory(2, 4 * kMiB, kGpu);
  scenario.out_of_memory(3, 2 * kMiB, kGpu);
  const Overview overview = scenario.overview();
  Symbols symbols(overview.definitions);
  EXPECT_FALSE(analyze_summary(overview, symbols, {})->failure.has_value()) << "its blocks tell the cause";
  SummaryOptions options;
  using Loaded = Result<std::shared_ptr<const AttributedStore>>;
  options.load_blocks = [&] { return Loaded(std::make_shared<const AttributedStore>(attribute(scenario.store()))); };
  const auto summary = analyze_summary(overview, symbols, options);
  ASSERT_TRUE(summary->failure.has_value());
  EXPECT_EQ(summary->failure->request.bytes, 2 * kMiB);
  EXPECT_EQ(summary->failure->last_ns, 3U);
  EXPECT_EQ(summary->failure->cause, OomCause::fragmentation) << "2 of the 8 MiB reserved are in no block";
  options.load_blocks = [] { return Loaded(Error{"gone"}); };
  EXPECT_FALSE(analyze_summary(overview, symbols, options)->failure.has_value());
}

TEST(Summary, ReadsNoBlocksOfARunWithoutErrors) {
  Scenario scenario;
  scenario.allocate(1, "a", 100, kGpu);
  const Overview overview = scenario.overview();
  Symbols symbols(overview.definitions);
  SummaryOptions options;
  options.load_blocks = []() -> Result<std::shared_ptr<const AttributedStore>> {
    ADD_FAILURE();
    return Error{"not needed"};
  };
  EXPECT_FALSE(analyze_summary(overview, symbols, options)->failure.has_value());
}

// The allocator reports 50 bytes, the blocks are 100: some free events were lost.
TEST(Summary, SharesStayBelowOne) {
  Scenario scenario;
  scenario.totals(kGpu, 0 - std::uint64_t{50}, 4096);
  scenario.allocate(1, "a", 75, kGpu, scenario.stack({scenario.python("f", "f.py", 1)}));
  scenario.allocate(2, "b", 25, kGpu, scenario.stack({scenario.python("g", "f.py", 2)}));
  const Overview overview = scenario.overview();
  Symbols symbols(overview.definitions);
  const auto summary = analyze_summary(overview, symbols, {});
  ASSERT_EQ(summary->devices[0].totals.peak_allocated_bytes, 50U);
  EXPECT_DOUBLE_EQ(summary->devices[0].call_sites.at(0).share, 0.75);
  EXPECT_DOUBLE_EQ(summary->devices[0].call_sites.at(1).share, 0.25);
}

TEST(Summary, KeepsDevicesApart) {
  Scenario scenario;
  scenario.totals(kGpu, 50, 4096);
  scenario.allocate(1, "a", 100);
  scenario.allocate(2, "b", 7, kGpu);
  const Overview overview = scenario.overview();
  Symbols symbols(overview.definitions);
  const auto both = analyze_summary(overview, symbols, {});
  ASSERT_EQ(both->devices.size(), 2U);
  EXPECT_EQ(both->devices[0].totals.peak_allocated_bytes, 57U) << "GPUs first";
  EXPECT_EQ(both->devices[0].unrecorded_at_peak_bytes, 50U);
  EXPECT_EQ(both->devices[1].totals.peak_allocated_bytes, 100U);
  const auto gpu = analyze_summary(overview, symbols, {"cuda:0", 10});
  ASSERT_EQ(gpu->devices.size(), 1U);
  EXPECT_EQ(gpu->devices[0].totals.device, kGpu);
}

}  // namespace
}  // namespace tidemark
