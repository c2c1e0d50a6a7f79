#include "analyze/ledger/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "unit/analyze/ledger_support.h"

namespace tidemark::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Ledger, AddsUpToWhatIsUsedAtThePeak) {
  const LedgerDevice device = analyze_one(everything());
  EXPECT_EQ(device.device, "cuda:0");
  EXPECT_EQ(device.model, "NVIDIA H100");
  EXPECT_EQ(device.total_bytes, 1000U);
  const LedgerBreakdown& ledger = device.breakdown;
  EXPECT_EQ(ledger.time_ns, 24U);
  EXPECT_EQ(ledger.processes_sampled_at_ns, 22U);
  EXPECT_EQ(ledger.used_bytes, 960U);
  // The allocator's 620 are the 600 reserved and 20 more. Context: 750 - 600 - 40 - 20 - 5 = 85.
  EXPECT_THAT(lines_of(ledger),
              ElementsAre("pytorch 600", "library NCCL 40", "library PyTorch's allocator beyond reserved 20",
                          "library kernels 5", "context 85", "process python other.py 200"));
  EXPECT_EQ(ledger.allocated_bytes, 560U);
  EXPECT_EQ(ledger.cached_bytes, 40U);
  // 960 - 600 - 40 - 20 - 5 - 85 - 200
  EXPECT_EQ(ledger.unexplained_bytes, 10);
  EXPECT_EQ(ledger.managed_bytes, 300U);
  EXPECT_EQ(ledger.pinned_host_bytes, 70U);
  EXPECT_THAT(ledger.caveats, IsEmpty());
}

TEST(Ledger, AtTheEndWithTheContextOfTheNearestList) {
  LedgerOptions options;
  options.at.kind = Moment::Kind::end;
  const LedgerBreakdown ledger = analyze_one(everything(), options).breakdown;
  EXPECT_EQ(ledger.time_ns, 35U);
  EXPECT_EQ(ledger.used_bytes, 940U);
  EXPECT_THAT(lines_of(ledger),
              ElementsAre("pytorch 600", "library PyTorch's allocator beyond reserved 20", "library NCCL 15",
                          "library kernels 5", "context 85", "process python other.py 200"));
  EXPECT_EQ(ledger.allocated_bytes, 0U);
  EXPECT_EQ(ledger.cached_bytes, 600U);
  EXPECT_EQ(ledger.unexplained_bytes, 15);  // 940 - 600 - 20 - 15 - 5 - 85 - 200
}

TEST(Ledger, AtATimeIsTheLatestSampleNotAfterIt) {
  EXPECT_EQ(analyze_one(everything(), at(34)).breakdown.time_ns, 24U);
  // 35 is at and after 31 of the free: the walk over the store equals the values kept while reading.
  LedgerOptions end;
  end.at.kind = Moment::Kind::end;
  EXPECT_EQ(lines_of(analyze_one(everything(), at(36)).breakdown), lines_of(analyze_one(everything(), end).breakdown));
}

// Nothing was allocated before the first event, so memory used then has no known owner; no list came before.
TEST(Ledger, BeforeTheFirstEvent) {
  const LedgerBreakdown ledger = analyze_one(everything(), at(6)).breakdown;
  EXPECT_EQ(ledger.time_ns, 5U);
  EXPECT_EQ(ledger.processes_sampled_at_ns, 22U);
  EXPECT_THAT(lines_of(ledger), ElementsAre("pytorch 0", "context 85", "process python other.py 200"));
  EXPECT_EQ(ledger.unexplained_bytes, 20 - 85 - 200) << "below 0, and shown";
}

TEST(Ledger, BeforeTheFirstSample) {
  const LedgerBreakdown ledger = analyze_one(everything(), at(4)).breakdown;
  EXPECT_EQ(ledger.time_ns, 4U);
  EXPECT_EQ(ledger.used_bytes, std::nullopt);
  EXPECT_EQ(ledger.unexplained_bytes, std::nullopt);
  EXPECT_THAT(ledger.caveats, Contains(LedgerCaveat::no_sample_yet));
}

TEST(Ledger, OverTime) {
  const LedgerDevice device = analyze_one(everything());
  EXPECT_THAT(device.libraries, ElementsAre("NCCL", "PyTorch's allocator beyond reserved", "kernels"));
  ASSERT_EQ(device.points.size(), 3U);
  const LedgerPoint& peak = device.points[1];
  EXPECT_EQ(peak.time_ns, 24U);
  EXPECT_EQ(peak.used_bytes, 960U);
  EXPECT_EQ(peak.allocated_bytes, 560U);
  EXPECT_EQ(peak.cached_bytes, 40U);
  EXPECT_THAT(peak.library_bytes, ElementsAre(40, 20, 5));
  EXPECT_EQ(peak.other_library_bytes, 0U);
  EXPECT_EQ(peak.context_bytes, 85U);
  EXPECT_EQ(peak.process_bytes, 200U);
  EXPECT_THAT(device.points[2].library_bytes, ElementsAre(15, 20, 5));
}

TEST(Ledger, OverTimeKeepsTheHighestSampleOfEachStretch) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.totals(kGpu, 0, 10);
  scenario.allocate(1, "a", 10, kGpu);
  // Four stretches of 25: 0..24, 25..49, 50..74, 75..99.
  for (std::uint64_t time = 5; time < 100; time += 5) scenario.used(time, gpu, time == 30 ? 500 : time % 25);
  LedgerOptions options;
  options.points = 4;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> kept;
  for (const LedgerPoint& point : analyze_one(scenario, options).points) {
    kept.emplace_back(point.time_ns, point.used_bytes);
  }
  // The last sample is at 95, so stretches are of 95 / 4 + 1 = 24: 0..23, 24..47, 48..71, 72..95.
  EXPECT_THAT(kept, ElementsAre(std::pair(20, 20), std::pair(30, 500), std::pair(70, 20), std::pair(95, 20)));
}

// Values kept while reading, without a store, give the same explanation.
TEST(Ledger, TheSameFromAnOverview) {
  const Scenario scenario = everything();
  LedgerOptions end;
  end.at.kind = Moment::Kind::end;
  const std::vector<LedgerExtremes> extremes = extremes_of(scenario);
  ASSERT_EQ(extremes.size(), 1U);
  EXPECT_EQ(extremes[0].device, "cuda:0");
  const LedgerBreakdown peak = analyze_one(scenario).breakdown;
  EXPECT_EQ(lines_of(extremes[0].peak), lines_of(peak));
  EXPECT_EQ(extremes[0].peak.unexplained_bytes, peak.unexplained_bytes);
  ASSERT_TRUE(extremes[0].end);
  const LedgerBreakdown at_end = analyze_one(scenario, end).breakdown;
  EXPECT_EQ(lines_of(*extremes[0].end), lines_of(at_end));
  EXPECT_EQ(extremes[0].end->unexplained_bytes, at_end.unexplained_bytes);
  EXPECT_THAT(extremes_of(scenario, "cuda:1"), IsEmpty());
}

TEST(Ledger, WithoutDriverEventsLibrariesAreInTheContext) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.processes(20, gpu, {process(ProcessKind::recorded, 690)});
  scenario.used(20, gpu, 700);
  const LedgerBreakdown ledger = analyze_one(scenario).breakdown;
  EXPECT_THAT(lines_of(ledger), ElementsAre("pytorch 600", "context 90"));
  EXPECT_EQ(ledger.unexplained_bytes, 10);
  EXPECT_EQ(ledger.managed_bytes, std::nullopt);
  EXPECT_EQ(ledger.pinned_host_bytes, std::nullopt);
  EXPECT_THAT(ledger.caveats, ElementsAre(LedgerCaveat::libraries_in_context));
}

// PyTorch's memory without the driver's calls.
TEST(Ledger, PinnedMemoryAloneIsNoDriverCall) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.allocate(15, "pinned", 64, kPinned);
  scenario.used(20, gpu, 700);
  const LedgerBreakdown ledger = analyze_one(scenario).breakdown;
  EXPECT_EQ(ledger.pinned_host_bytes, 64U);
  EXPECT_EQ(ledger.managed_bytes, std::nullopt);
  EXPECT_THAT(ledger.caveats, Contains(LedgerCaveat::libraries_in_context));
}

// empty_cache(): cached memory is released without a block.
TEST(Ledger, ReservedIsAsOfTheLatestRelease) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.free(11, "a");
  scenario.used(15, gpu, 690);
  scenario.totals(kGpu, 0, 0);
  scenario.release(20, kGpu);
  scenario.used(30, gpu, 90);
  scenario.allocate(40, "b", 1);
  LedgerOptions options;
  options.at.kind = Moment::Kind::time;
  options.at.time_ns = 35;
  const LedgerBreakdown ledger = analyze_one(scenario, options).breakdown;
  EXPECT_EQ(ledger.time_ns, 30U);
  EXPECT_EQ(ledger.cached_bytes, 0U);
  EXPECT_EQ(ledger.lines.at(0).bytes, 0U);
  EXPECT_EQ(analyze_one(scenario).breakdown.cached_bytes, 600U) << "at the peak";
}

// The last event is a release; a sample of the exiting process, whose context is released too, does not count.
TEST(Ledger, TheEndIsAfterTheLastRelease) {
  for (const std::uint64_t used_then : {90U, 40U}) {
    Scenario scenario;
    const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
    scenario.totals(kGpu, 0, 600);
    scenario.allocate(10, "a", 500, kGpu);
    scenario.used(12, gpu, 690);
    scenario.free(15, "a");
    scenario.totals(kGpu, 0, 0);
    scenario.release(20, kGpu);
    scenario.used(22, gpu, used_then);
    scenario.used(32, gpu, 0);
    LedgerOptions options;
    options.at.kind = Moment::Kind::end;
    const LedgerBreakdown ledger = analyze_one(scenario, options).breakdown;
    EXPECT_EQ(ledger.time_ns, used_then == 90 ? 22U : 12U);
    EXPECT_EQ(ledger.lines.at(0).bytes, used_then == 90 ? 0U : 600U);
  }
}

TEST(Ledger, ReportsMissingDriverCalls) {
  Scenario scenario = everything();
  scenario.definitions.losses.push_back({Loss::Kind::driver_off, 1, "torch.profiler took CUPTI"});
  EXPECT_THAT(analyze_one(scenario).breakdown.caveats, ElementsAre(LedgerCaveat::driver_calls_missing));
}

TEST(Ledger, DevicesAreKeptApartAndUnusedOnesLeftOut) {
  Scenario scenario;
  const SampledDeviceId first = scenario.sampled_gpu(0, 1000);
  const SampledDeviceId second = scenario.sampled_gpu(1, 1000);
  const SampledDeviceId third = scenario.sampled_gpu(2, 1000);
  scenario.totals(kGpu, 0, 100);
  scenario.totals(kGpu1, 0, 200);
  scenario.allocate(10, "a", 90, kGpu);
  scenario.allocate(11, "b", 190, kGpu1);
  scenario.processes(20, first, {process(ProcessKind::recorded, 130)});
  scenario.processes(20, second, {process(ProcessKind::recorded, 240), process(ProcessKind::job, 7, "rank 1")});
  scenario.processes(20, third, {process(ProcessKind::other, 50, "python notebook")});
  scenario.used(21, first, 131);
  scenario.used(21, second, 252);
  scenario.used(21, third, 51);
  const Store store = scenario.store();
  const Ledger ledger = analyze(store);
  ASSERT_EQ(ledger.devices.size(), 2U);
  EXPECT_THAT(lines_of(ledger.devices[0].breakdown), ElementsAre("pytorch 100", "context 30"));
  EXPECT_EQ(ledger.devices[0].breakdown.unexplained_bytes, 1);
  EXPECT_THAT(lines_of(ledger.devices[1].breakdown), ElementsAre("pytorch 200", "context 40", "process rank 1 7"));
  EXPECT_EQ(ledger.devices[1].breakdown.unexplained_bytes, 5);

  LedgerOptions unused;
  unused.device = "cuda:2";
  const LedgerBreakdown asked = analyze(store, unused).devices.at(0).breakdown;
  EXPECT_THAT(lines_of(asked), ElementsAre("pytorch 0", "context n/a", "process python notebook 50"));
  EXPECT_EQ(asked.unexplained_bytes, 1);

  LedgerOptions missing;
  missing.device = "cuda:3";
  const Symbols symbols(store.definitions);
  EXPECT_THAT(analyze_ledger(store, symbols, missing).error().message,
              HasSubstr("no GPU 'cuda:3' (available: cuda:0, cuda:1, cuda:2)"));
}

// 900 are used while cuMemAlloc takes 400 for a block that is freed again before the next sample: no event has them.
TEST(Ledger, SamplesDuringALongCallOfTheDriverAreNoPeak) {
  Scenario scenario;
  const StackId torch = scenario.stack({scenario.native("/opt/torch/lib/libc10_cuda.so", 1)});
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.allocate(1, "segment", 500, kDriver, torch);
  scenario.totals(kGpu, 0, 500);
  scenario.allocate(1, "a", 500, kGpu);
  scenario.used(20, gpu, 520);
  scenario.used(40, gpu, 900);
  scenario.slow_call(45, 10);
  scenario.allocate(45, "large", 400, kDriver, torch);
  scenario.free(46, "large");
  scenario.used(60, gpu, 530);
  scenario.free(70, "a");
  const LedgerDevice device = analyze_one(scenario);
  EXPECT_EQ(device.breakdown.time_ns, 60U);
  EXPECT_EQ(device.breakdown.used_bytes, 530U);
  EXPECT_THAT(device.breakdown.caveats, Contains(LedgerCaveat::transient_peak));
  EXPECT_EQ(device.breakdown.transient_peak_bytes, 900U);
  std::vector<std::uint64_t> times;
  for (const LedgerPoint& point : device.points) times.push_back(point.time_ns);
  EXPECT_THAT(times, ElementsAre(20, 60));
  EXPECT_THAT(analyze_one(scenario, at(41)).breakdown.caveats, Contains(LedgerCaveat::during_driver_call))
      << "asked for, it is shown";
  EXPECT_THAT(analyze_one(scenario, at(61)).breakdown.caveats, Not(Contains(LedgerCaveat::during_driver_call)));
}

// The peak is a sample that the 3 ns of the call before its return do not cover.
TEST(Ledger, ALongCallCoversNothingBeforeIt) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.totals(kGpu, 0, 500);
  scenario.allocate(1, "a", 500, kGpu);
  scenario.used(40, gpu, 900);
  scenario.slow_call(45, 3);
  scenario.used(60, gpu, 530);
  scenario.free(70, "a");
  const LedgerBreakdown peak = analyze_one(scenario).breakdown;
  EXPECT_EQ(peak.time_ns, 40U);
  EXPECT_THAT(peak.caveats, Not(Contains(LedgerCaveat::transient_peak)));
}

// The list at 60 was taken while the context was being created, which allocates 700 before the first block at 70. It is
// nearer to the peak than the next one, because lists are taken once a second.
TEST(Ledger, ListsFromBeforeTheFirstAllocationDoNotCountAfterIt) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 2000);
  scenario.processes(60, gpu, {process(ProcessKind::recorded, 40)});
  scenario.used(62, gpu, 50);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(70, "a", 500, kGpu);
  scenario.used(75, gpu, 1310);
  scenario.processes(200, gpu, {process(ProcessKind::recorded, 1300)});
  scenario.free(210, "a");
  const LedgerBreakdown peak = analyze_one(scenario).breakdown;
  EXPECT_EQ(peak.time_ns, 75U);
  EXPECT_EQ(peak.processes_sampled_at_ns, 200U);
  EXPECT_THAT(lines_of(peak), ElementsAre("pytorch 600", "context 700"));
  EXPECT_EQ(peak.unexplained_bytes, 10);
  const LedgerBreakdown starting = analyze_one(scenario, at(63)).breakdown;
  EXPECT_EQ(starting.processes_sampled_at_ns, 60U);
  EXPECT_THAT(lines_of(starting), ElementsAre("pytorch 0", "context 40"));
  EXPECT_EQ(starting.unexplained_bytes, 10);
}

// Another process took 300 between the list at 80 and the peak. The list at 200 would explain them.
TEST(Ledger, TheNearestListCountsWhateverItExplains) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 2000);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(70, "a", 500, kGpu);
  scenario.processes(80, gpu, {process(ProcessKind::recorded, 1300)});
  scenario.used(90, gpu, 1610);
  scenario.processes(200, gpu, {process(ProcessKind::recorded, 1300), process(ProcessKind::other, 300, "other")});
  scenario.free(210, "a");
  const LedgerBreakdown peak = analyze_one(scenario).breakdown;
  EXPECT_EQ(peak.processes_sampled_at_ns, 80U);
  EXPECT_THAT(lines_of(peak), ElementsAre("pytorch 600", "context 700"));
  EXPECT_EQ(peak.unexplained_bytes, 310);
}

// torch.cuda.empty_cache() released 400 of 500; the allocator reports it only with its next event.
TEST(Ledger, ReleasedMemoryFollowsTheDriver) {
  const auto scenario_with = [](std::uint64_t allocated) {
    Scenario scenario;
    const StackId torch = scenario.stack({scenario.native("/opt/torch/lib/libc10_cuda.so", 1)});
    const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
    scenario.allocate(1, "cache", 400, kDriver, torch);
    scenario.allocate(2, "segment", 100, kDriver, torch);
    scenario.totals(kGpu, 0, 500);
    scenario.allocate(3, "a", allocated, kGpu);
    scenario.free(10, "cache");
    scenario.used(20, gpu, 130);
    scenario.free(30, "a");
    return scenario;
  };
  const LedgerBreakdown ledger = analyze_one(scenario_with(60)).breakdown;
  EXPECT_THAT(lines_of(ledger), ElementsAre("pytorch 100", "context n/a"));
  EXPECT_EQ(ledger.cached_bytes, 40U);
  EXPECT_EQ(ledger.unexplained_bytes, 30);
  // 150 allocated cannot be in 100: another library reserved a segment on behalf of PyTorch, and its report counts.
  EXPECT_THAT(lines_of(analyze_one(scenario_with(150)).breakdown), ElementsAre("pytorch 500", "context n/a"));
  Scenario cut_off = scenario_with(60);
  cut_off.definitions.losses.push_back({Loss::Kind::driver_off, 1, ""});
  EXPECT_THAT(lines_of(analyze_one(cut_off).breakdown), ElementsAre("pytorch 500", "context n/a"));
}

// With cudaMallocAsync as its backend PyTorch reports nothing.
TEST(Ledger, WithoutPyTorchsReportTheDriverDecides) {
  Scenario scenario;
  const StackId torch = scenario.stack({scenario.native("/opt/torch/lib/libc10_cuda.so", 1)});
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.allocate(1, "pool", 400, kDriver, torch);
  scenario.used(20, gpu, 520);
  scenario.processes(21, gpu, {process(ProcessKind::recorded, 510)});
  scenario.free(30, "pool");
  const LedgerBreakdown ledger = analyze_one(scenario).breakdown;
  EXPECT_THAT(lines_of(ledger), ElementsAre("pytorch 400", "context 110"));
  EXPECT_EQ(ledger.allocated_bytes, std::nullopt);
  EXPECT_EQ(ledger.cached_bytes, std::nullopt);
  EXPECT_EQ(ledger.unexplained_bytes, 10);
}

}  // namespace
}  // namespace tidemark::testing
