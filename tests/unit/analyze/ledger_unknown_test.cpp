// Ledgers where the driver or the recording does not say everything, or says it of another time.
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

// On a shared GPU the sample of 'used' may be older than what the process took since.
TEST(Ledger, UnexplainedMayBeNegative) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.users(20, gpu, {user(UserKind::recorded, 590)});
  scenario.used(20, gpu, 550);
  const LedgerMoment ledger = analyze_one(scenario).moment;
  EXPECT_THAT(lines_of(ledger), ElementsAre("pytorch 600", "context 0"));
  EXPECT_EQ(ledger.unexplained_bytes, -50);
  EXPECT_THAT(ledger.notes, Contains(LedgerNote::process_below_held));
}

TEST(Ledger, WhereTheDriverDoesNotSayWhatProcessesHold) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.users(20, gpu, {user(UserKind::recorded, std::nullopt), user(UserKind::ended, std::nullopt)});
  scenario.used(20, gpu, 700);
  const LedgerMoment ledger = analyze_one(scenario).moment;
  EXPECT_THAT(lines_of(ledger), ElementsAre("pytorch 600", "context n/a", "process n/a"));
  EXPECT_EQ(ledger.unexplained_bytes, 100);
  EXPECT_THAT(ledger.notes, ElementsAre(LedgerNote::libraries_in_context, LedgerNote::other_bytes_unknown,
                                        LedgerNote::process_bytes_unknown));
}

TEST(Ledger, WhereNoListOfUsersWasTaken) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.used(20, gpu, 700);
  const LedgerDevice device = analyze_one(scenario);
  EXPECT_THAT(lines_of(device.moment), ElementsAre("pytorch 600", "context n/a"));
  EXPECT_EQ(device.moment.unexplained_bytes, 100);
  EXPECT_THAT(device.moment.notes, Contains(LedgerNote::no_users));
  ASSERT_EQ(device.points.size(), 1U);
  EXPECT_EQ(device.points[0].context_bytes, std::nullopt);
  EXPECT_EQ(device.points[0].process_bytes, std::nullopt);
}

TEST(Ledger, OneProcessOfAnotherNamespaceThatHoldsEnoughIsTaken) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.users(20, gpu, {user(UserKind::other_namespace, 30, {}, 5), user(UserKind::other_namespace, 650, {}, 6)});
  scenario.used(20, gpu, 700);
  const LedgerMoment ledger = analyze_one(scenario).moment;
  EXPECT_THAT(lines_of(ledger), ElementsAre("pytorch 600", "context 50", "process 30"));
  EXPECT_EQ(ledger.lines.back().pid, 5);
  EXPECT_EQ(ledger.unexplained_bytes, 20);
  EXPECT_THAT(ledger.notes, Contains(LedgerNote::process_taken));
}

TEST(Ledger, NoneIsTakenWhereItCouldBeEither) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 2000);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.users(20, gpu, {user(UserKind::other_namespace, 650), user(UserKind::other_namespace, 640)});
  scenario.used(20, gpu, 1300);
  const LedgerMoment ledger = analyze_one(scenario).moment;
  EXPECT_THAT(lines_of(ledger), ElementsAre("pytorch 600", "context n/a", "process 650", "process 640"));
  EXPECT_EQ(ledger.unexplained_bytes, 1300 - 600 - 650 - 640);
  EXPECT_THAT(ledger.notes, Contains(LedgerNote::process_not_listed));
  EXPECT_THAT(ledger.notes, Not(Contains(LedgerNote::process_taken)));
}

TEST(Ledger, WithoutSamplesThePartsThatAreKnown) {
  Scenario scenario;
  const StackId nccl = scenario.stack({scenario.native("/lib/libnccl.so.2", 1)});
  scenario.allocate(5, "n", 40, kDriver, nccl);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  const LedgerDevice device = analyze_one(scenario);
  EXPECT_EQ(device.device, "cuda:0");
  EXPECT_EQ(device.moment.time_ns, 10U) << "of the peak that PyTorch reserved";
  EXPECT_THAT(lines_of(device.moment), ElementsAre("pytorch 600", "library NCCL 40", "context n/a"));
  EXPECT_EQ(device.moment.used_bytes, std::nullopt);
  EXPECT_EQ(device.moment.unexplained_bytes, std::nullopt);
  EXPECT_THAT(device.moment.notes, ElementsAre(LedgerNote::no_samples));
  EXPECT_THAT(device.points, IsEmpty());
  EXPECT_THAT(ledger_extremes(scenario.overview(), std::nullopt), IsEmpty());
}

TEST(Ledger, WhereTheSampledDevicesAreOthers) {
  Scenario scenario;
  scenario.used(5, scenario.sampled({"nvidia", 3, {}, {}, "NVIDIA H100", "", "", 1000}), 400);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  const LedgerDevice device = analyze_one(scenario);
  EXPECT_EQ(device.device, "cuda:0");
  EXPECT_THAT(device.moment.notes, Contains(LedgerNote::device_not_sampled));
}

TEST(Ledger, WhereTheDriverNeverSaysWhatIsUsed) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.used(11, gpu, std::nullopt);
  scenario.users(12, gpu, {user(UserKind::recorded, 690)});
  const LedgerMoment ledger = analyze_one(scenario).moment;
  EXPECT_EQ(ledger.time_ns, 10U);
  EXPECT_THAT(lines_of(ledger), ElementsAre("pytorch 600", "context 90"));
  EXPECT_EQ(ledger.unexplained_bytes, std::nullopt);
  EXPECT_THAT(ledger.notes, Contains(LedgerNote::used_unknown));
}

// Kernels were loaded between two lists: 60 of context, then 90. The nearer list counts, the earlier one of two as
// near.
TEST(Ledger, TheNearestListOfUsersCounts) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.users(20, gpu, {user(UserKind::recorded, 660)});
  scenario.used(30, gpu, 700);
  scenario.used(31, gpu, 701);
  scenario.users(40, gpu, {user(UserKind::recorded, 690)});
  const LedgerMoment peak = analyze_one(scenario).moment;
  EXPECT_EQ(peak.time_ns, 31U);
  EXPECT_EQ(peak.users_at_ns, 40U);
  EXPECT_THAT(lines_of(peak), ElementsAre("pytorch 600", "context 90"));
  EXPECT_EQ(lines_of(ledger_extremes(scenario.overview(), std::nullopt).at(0).peak), lines_of(peak));
  const LedgerMoment before = analyze_one(scenario, at(30)).moment;
  EXPECT_EQ(before.users_at_ns, 20U);
  EXPECT_THAT(lines_of(before), ElementsAre("pytorch 600", "context 60"));
}

// A process that ended is not in the next list, however near that is.
TEST(Ledger, AListWithTheProcessCountsMore) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.users(20, gpu, {user(UserKind::recorded, 660)});
  scenario.used(39, gpu, 700);
  scenario.users(40, gpu, {});
  EXPECT_EQ(analyze_one(scenario).moment.users_at_ns, 20U);
}

// Lists come once a second: the process began after the one before the sample.
TEST(Ledger, AProcessThatBeganSinceTheLatestListIsInTheNext) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.users(5, gpu, {user(UserKind::other, 50, "python other.py")});
  scenario.used(6, gpu, 70);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.used(20, gpu, 760);
  scenario.users(30, gpu, {user(UserKind::recorded, 690), user(UserKind::other, 60, "python other.py")});
  const LedgerMoment peak = analyze_one(scenario).moment;
  EXPECT_EQ(peak.users_at_ns, 30U);
  EXPECT_THAT(lines_of(peak), ElementsAre("pytorch 600", "context 90", "process python other.py 60"));
  EXPECT_EQ(peak.unexplained_bytes, 10);
  const LedgerMoment before = analyze_one(scenario, at(7)).moment;
  EXPECT_EQ(before.users_at_ns, 5U) << "when it held nothing yet";
  EXPECT_THAT(lines_of(before), ElementsAre("pytorch 0", "context n/a", "process python other.py 50"));
  EXPECT_EQ(before.unexplained_bytes, 20);
}

// AMD and Intel devices: which of the program's devices they are is not known.
TEST(Ledger, OfADeviceWithoutTheProgramsNumber) {
  Scenario scenario;
  const SampledDeviceId amd = scenario.sampled({"amd", 1, {}, {}, "MI300X", "", "", 1000});
  scenario.allocate(10, "a", 500);  // on the CPU
  scenario.users(20, amd, {user(UserKind::recorded, 300, "python train.py", 123), user(UserKind::other, 20, "x", 9)});
  scenario.used(21, amd, 330);
  const LedgerDevice device = analyze_one(scenario);
  EXPECT_EQ(device.device, "amd:1");
  EXPECT_THAT(lines_of(device.moment), ElementsAre("process python train.py 300", "process x 20"));
  EXPECT_EQ(device.moment.lines[0].user, UserKind::recorded);
  EXPECT_EQ(device.moment.unexplained_bytes, 10);
  EXPECT_EQ(device.moment.allocated_bytes, std::nullopt);
  EXPECT_THAT(device.moment.notes, ElementsAre(LedgerNote::allocator_unknown));
}

TEST(Ledger, MigInstancesAreCalledWithinTheirGpu) {
  Scenario scenario;
  const SampledDeviceId mig = scenario.sampled({"nvidia", 1, 2, {}, "MIG 1g.10gb", "", "", 1000});
  scenario.allocate(10, "a", 500);
  scenario.users(20, mig, {user(UserKind::recorded, std::nullopt)});
  scenario.used(21, mig, 330);
  const LedgerDevice device = analyze_one(scenario);
  EXPECT_EQ(device.device, "nvidia:2.1");
  EXPECT_EQ(device.moment.unexplained_bytes, 330);
  EXPECT_THAT(device.moment.notes, ElementsAre(LedgerNote::allocator_unknown, LedgerNote::other_bytes_unknown));
}

// A number that no program has.
TEST(Ledger, OfADeviceWithAStrangeNumber) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled({"nvidia", 0, {}, 4'000'000'000U, "H100", "", "", {}});
  scenario.allocate(10, "a", 500);
  scenario.users(20, gpu, {user(UserKind::recorded, 5)});
  scenario.used(21, gpu, 330);
  EXPECT_EQ(analyze_one(scenario).device, "nvidia:0");
}

// Recording began late: until PyTorch's first event what it has reserved is not known.
TEST(Ledger, ReservedIsUnknownBeforeTheFirstEventOfALateRecording) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.used(5, gpu, 500);
  scenario.users(6, gpu, {user(UserKind::recorded, 500)});
  scenario.totals(kGpu, 300, 400);  // 300 allocated before the first event
  scenario.allocate(10, "a", 50, kGpu);
  const LedgerMoment ledger = analyze_one(scenario, at(7)).moment;
  EXPECT_THAT(lines_of(ledger), ElementsAre("pytorch n/a", "context n/a"));
  EXPECT_EQ(ledger.unexplained_bytes, 500);
  EXPECT_THAT(ledger.notes, Contains(LedgerNote::reserved_unknown));
}

TEST(Ledger, OfAProcessThatUsedNoGpuIsEmpty) {
  Scenario scenario;
  scenario.allocate(10, "a", 500);
  EXPECT_THAT(analyze(scenario.store()).devices, IsEmpty());
}

}  // namespace
}  // namespace tidemark::testing
