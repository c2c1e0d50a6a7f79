// Ledgers with incomplete data from the driver or the recording, or with data from another time.
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
using ::testing::IsEmpty;
using ::testing::Not;

// On a shared GPU the sample of 'used' may be older than later allocations of the process.
TEST(Ledger, UnexplainedMayBeNegative) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.processes(20, gpu, {process(ProcessKind::recorded, 590)});
  scenario.used(20, gpu, 550);
  const LedgerBreakdown ledger = analyze_one(scenario).breakdown;
  EXPECT_THAT(lines_of(ledger), ElementsAre("pytorch 600", "context 0"));
  EXPECT_EQ(ledger.unexplained_bytes, -50);
  EXPECT_THAT(ledger.caveats, Contains(LedgerCaveat::process_below_known));
}

TEST(Ledger, WhereTheDriverDoesNotSayWhatProcessesHold) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.processes(20, gpu,
                     {process(ProcessKind::recorded, std::nullopt), process(ProcessKind::ended, std::nullopt)});
  scenario.used(20, gpu, 700);
  const LedgerBreakdown ledger = analyze_one(scenario).breakdown;
  EXPECT_THAT(lines_of(ledger), ElementsAre("pytorch 600", "context n/a", "process n/a"));
  EXPECT_EQ(ledger.unexplained_bytes, 100);
  EXPECT_THAT(ledger.caveats, ElementsAre(LedgerCaveat::libraries_in_context, LedgerCaveat::other_bytes_unknown,
                                          LedgerCaveat::process_bytes_unknown));
}

TEST(Ledger, WhereNoListOfProcessesWasTaken) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.used(20, gpu, 700);
  const LedgerDevice device = analyze_one(scenario);
  EXPECT_THAT(lines_of(device.breakdown), ElementsAre("pytorch 600", "context n/a"));
  EXPECT_EQ(device.breakdown.unexplained_bytes, 100);
  EXPECT_THAT(device.breakdown.caveats, Contains(LedgerCaveat::processes_unknown));
  ASSERT_EQ(device.points.size(), 1U);
  EXPECT_EQ(device.points[0].context_bytes, std::nullopt);
  EXPECT_EQ(device.points[0].process_bytes, std::nullopt);
}

TEST(Ledger, OneProcessOfAnotherNamespaceThatHoldsEnoughIsTaken) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.processes(
      20, gpu, {process(ProcessKind::other_namespace, 30, {}, 5), process(ProcessKind::other_namespace, 650, {}, 6)});
  scenario.used(20, gpu, 700);
  const LedgerBreakdown ledger = analyze_one(scenario).breakdown;
  EXPECT_THAT(lines_of(ledger), ElementsAre("pytorch 600", "context 50", "process 30"));
  EXPECT_EQ(ledger.lines.back().pid, 5);
  EXPECT_EQ(ledger.unexplained_bytes, 20);
  EXPECT_THAT(ledger.caveats, Contains(LedgerCaveat::process_matched));
}

TEST(Ledger, AmbiguousProcessesAreNotMatched) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 2000);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.processes(20, gpu, {process(ProcessKind::other_namespace, 650), process(ProcessKind::other_namespace, 640)});
  scenario.used(20, gpu, 1300);
  const LedgerBreakdown ledger = analyze_one(scenario).breakdown;
  EXPECT_THAT(lines_of(ledger), ElementsAre("pytorch 600", "context n/a", "process 650", "process 640"));
  EXPECT_EQ(ledger.unexplained_bytes, 1300 - 600 - 650 - 640);
  EXPECT_THAT(ledger.caveats, Contains(LedgerCaveat::process_not_listed));
  EXPECT_THAT(ledger.caveats, Not(Contains(LedgerCaveat::process_matched)));
}

TEST(Ledger, WithoutSamplesThePartsThatAreKnown) {
  Scenario scenario;
  const StackId nccl = scenario.stack({scenario.native("/lib/libnccl.so.2", 1)});
  scenario.allocate(5, "n", 40, kDriver, nccl);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  const LedgerDevice device = analyze_one(scenario);
  EXPECT_EQ(device.device, "cuda:0");
  EXPECT_EQ(device.breakdown.time_ns, 10U) << "of the peak that PyTorch reserved";
  EXPECT_THAT(lines_of(device.breakdown), ElementsAre("pytorch 600", "library NCCL 40", "context n/a"));
  EXPECT_EQ(device.breakdown.used_bytes, std::nullopt);
  EXPECT_EQ(device.breakdown.unexplained_bytes, std::nullopt);
  EXPECT_THAT(device.breakdown.caveats, ElementsAre(LedgerCaveat::no_samples));
  EXPECT_THAT(device.points, IsEmpty());
  EXPECT_THAT(extremes_of(scenario), IsEmpty());
}

TEST(Ledger, WhereTheSampledDevicesAreOthers) {
  Scenario scenario;
  scenario.used(5, scenario.sampled({"nvidia", 3, {}, {}, "NVIDIA H100", "", "", 1000}), 400);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  const LedgerDevice device = analyze_one(scenario);
  EXPECT_EQ(device.device, "cuda:0");
  EXPECT_THAT(device.breakdown.caveats, Contains(LedgerCaveat::device_not_sampled));
}

TEST(Ledger, WhereTheDriverNeverSaysWhatIsUsed) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.used(11, gpu, std::nullopt);
  scenario.processes(12, gpu, {process(ProcessKind::recorded, 690)});
  const LedgerBreakdown ledger = analyze_one(scenario).breakdown;
  EXPECT_EQ(ledger.time_ns, 10U);
  EXPECT_THAT(lines_of(ledger), ElementsAre("pytorch 600", "context 90"));
  EXPECT_EQ(ledger.unexplained_bytes, std::nullopt);
  EXPECT_THAT(ledger.caveats, Contains(LedgerCaveat::used_unknown));
}

// Kernels were loaded between two lists: 60 of context, then 90. The nearer list counts, the earlier one of two as
// near.
TEST(Ledger, TheNearestListOfProcessesCounts) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.processes(20, gpu, {process(ProcessKind::recorded, 660)});
  scenario.used(30, gpu, 700);
  scenario.used(31, gpu, 701);
  scenario.processes(40, gpu, {process(ProcessKind::recorded, 690)});
  const LedgerBreakdown peak = analyze_one(scenario).breakdown;
  EXPECT_EQ(peak.time_ns, 31U);
  EXPECT_EQ(peak.processes_sampled_at_ns, 40U);
  EXPECT_THAT(lines_of(peak), ElementsAre("pytorch 600", "context 90"));
  EXPECT_EQ(lines_of(extremes_of(scenario).at(0).peak), lines_of(peak));
  const LedgerBreakdown before = analyze_one(scenario, at(30)).breakdown;
  EXPECT_EQ(before.processes_sampled_at_ns, 20U);
  EXPECT_THAT(lines_of(before), ElementsAre("pytorch 600", "context 60"));
}

// A process that ended is not in the next list, regardless of its distance.
TEST(Ledger, AListWithTheProcessCountsMore) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.processes(20, gpu, {process(ProcessKind::recorded, 660)});
  scenario.used(39, gpu, 700);
  scenario.processes(40, gpu, {});
  EXPECT_EQ(analyze_one(scenario).breakdown.processes_sampled_at_ns, 20U);
}

// Lists come once a second: the process began after the one before the sample.
TEST(Ledger, AProcessThatBeganSinceTheLatestListIsInTheNext) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.processes(5, gpu, {process(ProcessKind::other, 50, "python other.py")});
  scenario.used(6, gpu, 70);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.used(20, gpu, 760);
  scenario.processes(30, gpu,
                     {process(ProcessKind::recorded, 690), process(ProcessKind::other, 60, "python other.py")});
  const LedgerBreakdown peak = analyze_one(scenario).breakdown;
  EXPECT_EQ(peak.processes_sampled_at_ns, 30U);
  EXPECT_THAT(lines_of(peak), ElementsAre("pytorch 600", "context 90", "process python other.py 60"));
  EXPECT_EQ(peak.unexplained_bytes, 10);
  const LedgerBreakdown before = analyze_one(scenario, at(7)).breakdown;
  EXPECT_EQ(before.processes_sampled_at_ns, 5U) << "when it held nothing yet";
  EXPECT_THAT(lines_of(before), ElementsAre("pytorch 0", "context n/a", "process python other.py 50"));
  EXPECT_EQ(before.unexplained_bytes, 20);
}

// AMD and Intel devices: their indexes in the program are unknown.
TEST(Ledger, OfADeviceWithoutTheProgramsNumber) {
  Scenario scenario;
  const SampledDeviceId amd = scenario.sampled({"amd", 1, {}, {}, "MI300X", "", "", 1000});
  scenario.allocate(10, "a", 500);  // on the CPU
  scenario.processes(
      20, amd, {process(ProcessKind::recorded, 300, "python train.py", 123), process(ProcessKind::other, 20, "x", 9)});
  scenario.used(21, amd, 330);
  const LedgerDevice device = analyze_one(scenario);
  EXPECT_EQ(device.device, "amd:1");
  EXPECT_THAT(lines_of(device.breakdown), ElementsAre("process python train.py 300", "process x 20"));
  EXPECT_EQ(device.breakdown.lines[0].process_kind, ProcessKind::recorded);
  EXPECT_EQ(device.breakdown.unexplained_bytes, 10);
  EXPECT_EQ(device.breakdown.allocated_bytes, std::nullopt);
  EXPECT_THAT(device.breakdown.caveats, ElementsAre(LedgerCaveat::allocator_unknown));
}

TEST(Ledger, MigInstancesAreCalledWithinTheirGpu) {
  Scenario scenario;
  const SampledDeviceId mig = scenario.sampled({"nvidia", 1, 2, {}, "MIG 1g.10gb", "", "", 1000});
  scenario.allocate(10, "a", 500);
  scenario.processes(20, mig, {process(ProcessKind::recorded, std::nullopt)});
  scenario.used(21, mig, 330);
  const LedgerDevice device = analyze_one(scenario);
  EXPECT_EQ(device.device, "nvidia:2.1");
  EXPECT_EQ(device.breakdown.unexplained_bytes, 330);
  EXPECT_THAT(device.breakdown.caveats,
              ElementsAre(LedgerCaveat::allocator_unknown, LedgerCaveat::other_bytes_unknown));
}

// A number that no program has.
TEST(Ledger, OfADeviceWithAStrangeNumber) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled({"nvidia", 0, {}, 4'000'000'000U, "H100", "", "", {}});
  scenario.allocate(10, "a", 500);
  scenario.processes(20, gpu, {process(ProcessKind::recorded, 5)});
  scenario.used(21, gpu, 330);
  EXPECT_EQ(analyze_one(scenario).device, "nvidia:0");
}

// Recording began late: PyTorch's reserved memory is unknown until its first event.
TEST(Ledger, ReservedIsUnknownBeforeTheFirstEventOfALateRecording) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.used(5, gpu, 500);
  scenario.processes(6, gpu, {process(ProcessKind::recorded, 500)});
  scenario.totals(kGpu, 300, 400);  // 300 allocated before the first event
  scenario.allocate(10, "a", 50, kGpu);
  const LedgerBreakdown ledger = analyze_one(scenario, at(7)).breakdown;
  EXPECT_THAT(lines_of(ledger), ElementsAre("pytorch n/a", "context n/a"));
  EXPECT_EQ(ledger.unexplained_bytes, 500);
  EXPECT_THAT(ledger.caveats, Contains(LedgerCaveat::reserved_unknown));
}

TEST(Ledger, OfAProcessThatUsedNoGpuIsEmpty) {
  Scenario scenario;
  scenario.allocate(10, "a", 500);
  EXPECT_THAT(analyze(scenario.store()).devices, IsEmpty());
}

}  // namespace
}  // namespace tidemark::testing
