#include "analyze/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
