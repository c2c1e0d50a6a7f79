#include "analyze/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analyze/held_at.h"
#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kDriver;
using testing::kGpu;
using testing::kGpu1;
using ::testing::Not;
using testing::Scenario;

constexpr Device kManaged = {DeviceType::cuda_managed, 0};
constexpr Device kPinned = {DeviceType::cuda_host, 0};

SampledUser user(UserKind kind, std::optional<std::uint64_t> bytes, std::string name = {}, std::int64_t pid = 77) {
  return {pid, kind, bytes, std::move(name)};
}

// "pytorch 610", "library NCCL 40", "process other.py n/a": the lines in a form that compares easily.
std::vector<std::string> lines_of(const LedgerMoment& ledger) {
  constexpr std::array kParts = {"pytorch", "library", "context", "process"};
  std::vector<std::string> words;
  for (const LedgerLine& line : ledger.lines) {
    words.push_back(std::string(kParts[static_cast<std::size_t>(line.part)]) +
                    (line.name.empty() ? "" : " " + line.name) + " " +
                    (line.bytes ? std::to_string(*line.bytes) : "n/a"));
  }
  return words;
}

Ledger analyze(const Store& store, const LedgerOptions& options = {}) {
  const Symbols symbols(store.definitions);
  auto ledger = analyze_ledger(store, symbols, options);
  EXPECT_TRUE(ledger.ok()) << ledger.error().message;
  return ledger.ok() ? std::move(*ledger) : Ledger{};
}

LedgerDevice analyze_one(const Scenario& scenario, const LedgerOptions& options = {}) {
  Ledger ledger = analyze(scenario.store(), options);
  EXPECT_EQ(ledger.devices.size(), 1U);
  return ledger.devices.empty() ? LedgerDevice{} : ledger.devices.front();
}

LedgerOptions at(std::uint64_t time_ns) {
  LedgerOptions options;
  options.at = {Moment::Kind::time, time_ns, 0};
  return options;
}

// Everything that there can be on one device. PyTorch reserves 600, of which 560 are allocated; its allocator took 620
// from the driver; NCCL took 40, the program's own library 5. By the driver's word the process holds 750 and another
// one 200, and 960 are used.
Scenario everything() {
  Scenario scenario;
  const LocationId main = scenario.python("main", "train.py", 1);
  const auto driver_stack = [&](const char* module) {
    return scenario.stack({main, scenario.native(module, 1), scenario.native("/usr/lib/libcudart.so.12", 2),
                           scenario.native("/usr/lib/libcuda.so.1", 3),
                           scenario.native("/opt/lib/libtidemark_preload.so", 4)});
  };
  const StackId allocator = driver_stack("/opt/torch/lib/libc10_cuda.so");
  const StackId nccl = driver_stack("/opt/nvidia/libnccl.so.2");
  const StackId own = driver_stack("/home/me/kernels.cpython-312-x86_64-linux-gnu.so");
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.used(5, gpu, 20);
  scenario.allocate(10, "segments", 620, kDriver, allocator);
  scenario.allocate(11, "nccl", 25, kDriver, nccl);
  scenario.allocate(12, "nccl2", 15, kDriver, nccl);
  scenario.allocate(13, "own", 5, kDriver, own);
  scenario.allocate(14, "managed", 300, kManaged, own);
  scenario.allocate(15, "pinned", 70, kPinned, own);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(20, "tensor", 560, kGpu);
  scenario.users(
      22, gpu, {user(UserKind::other, 200, "python other.py"), user(UserKind::recorded, 750, "python train.py", 123)});
  scenario.used(24, gpu, 960);
  scenario.free(30, "nccl");
  scenario.free(31, "tensor");
  scenario.used(35, gpu, 940);
  scenario.free(40, "own");
  return scenario;
}

TEST(Ledger, AddsUpToWhatIsUsedAtThePeak) {
  const LedgerDevice device = analyze_one(everything());
  EXPECT_EQ(device.device, "cuda:0");
  EXPECT_EQ(device.model, "NVIDIA H100");
  EXPECT_EQ(device.total_bytes, 1000U);
  const LedgerMoment& ledger = device.moment;
  EXPECT_EQ(ledger.time_ns, 24U);
  EXPECT_EQ(ledger.users_at_ns, 22U);
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
  EXPECT_THAT(ledger.notes, IsEmpty());
}

TEST(Ledger, AtTheEndWithTheContextOfTheNearestList) {
  LedgerOptions options;
  options.at.kind = Moment::Kind::end;
  const LedgerMoment ledger = analyze_one(everything(), options).moment;
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
  EXPECT_EQ(analyze_one(everything(), at(34)).moment.time_ns, 24U);
  // 35 is at and after 31 of the free: the walk over the store gives what reading kept for the end.
  LedgerOptions end;
  end.at.kind = Moment::Kind::end;
  EXPECT_EQ(lines_of(analyze_one(everything(), at(36)).moment), lines_of(analyze_one(everything(), end).moment));
}

// Nothing was allocated before the first event, so what is used then is nobody's that is known; no list came before.
TEST(Ledger, BeforeTheFirstEvent) {
  const LedgerMoment ledger = analyze_one(everything(), at(6)).moment;
  EXPECT_EQ(ledger.time_ns, 5U);
  EXPECT_EQ(ledger.users_at_ns, 22U);
  EXPECT_THAT(lines_of(ledger), ElementsAre("pytorch 0", "context 85", "process python other.py 200"));
  EXPECT_EQ(ledger.unexplained_bytes, 20 - 85 - 200) << "below 0, and shown";
}

TEST(Ledger, BeforeTheFirstSample) {
  const LedgerMoment ledger = analyze_one(everything(), at(4)).moment;
  EXPECT_EQ(ledger.time_ns, 4U);
  EXPECT_EQ(ledger.used_bytes, std::nullopt);
  EXPECT_EQ(ledger.unexplained_bytes, std::nullopt);
  EXPECT_THAT(ledger.notes, Contains(LedgerNote::no_sample_yet));
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

// What reading kept without a store explains the same.
TEST(Ledger, TheSameFromAnOverview) {
  const Scenario scenario = everything();
  LedgerOptions end;
  end.at.kind = Moment::Kind::end;
  const std::vector<LedgerExtremes> extremes = ledger_extremes(scenario.overview(), std::nullopt);
  ASSERT_EQ(extremes.size(), 1U);
  EXPECT_EQ(extremes[0].device, "cuda:0");
  const LedgerMoment peak = analyze_one(scenario).moment;
  EXPECT_EQ(lines_of(extremes[0].peak), lines_of(peak));
  EXPECT_EQ(extremes[0].peak.unexplained_bytes, peak.unexplained_bytes);
  ASSERT_TRUE(extremes[0].end);
  const LedgerMoment at_end = analyze_one(scenario, end).moment;
  EXPECT_EQ(lines_of(*extremes[0].end), lines_of(at_end));
  EXPECT_EQ(extremes[0].end->unexplained_bytes, at_end.unexplained_bytes);
  EXPECT_THAT(ledger_extremes(scenario.overview(), "cuda:1"), IsEmpty());
}

TEST(Ledger, WithoutDriverEventsLibrariesAreInTheContext) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.users(20, gpu, {user(UserKind::recorded, 690)});
  scenario.used(20, gpu, 700);
  const LedgerMoment ledger = analyze_one(scenario).moment;
  EXPECT_THAT(lines_of(ledger), ElementsAre("pytorch 600", "context 90"));
  EXPECT_EQ(ledger.unexplained_bytes, 10);
  EXPECT_EQ(ledger.managed_bytes, std::nullopt);
  EXPECT_EQ(ledger.pinned_host_bytes, std::nullopt);
  EXPECT_THAT(ledger.notes, ElementsAre(LedgerNote::libraries_in_context));
}

TEST(Ledger, SaysWhereCallsToTheDriverAreMissing) {
  Scenario scenario = everything();
  scenario.definitions.losses.push_back({Loss::Kind::driver_off, 1, "torch.profiler took CUPTI"});
  EXPECT_THAT(analyze_one(scenario).moment.notes, ElementsAre(LedgerNote::driver_calls_missing));
}

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

TEST(Ledger, DevicesAreKeptApartAndUnusedOnesLeftOut) {
  Scenario scenario;
  const SampledDeviceId first = scenario.sampled_gpu(0, 1000);
  const SampledDeviceId second = scenario.sampled_gpu(1, 1000);
  const SampledDeviceId third = scenario.sampled_gpu(2, 1000);
  scenario.totals(kGpu, 0, 100);
  scenario.totals(kGpu1, 0, 200);
  scenario.allocate(10, "a", 90, kGpu);
  scenario.allocate(11, "b", 190, kGpu1);
  scenario.users(20, first, {user(UserKind::recorded, 130)});
  scenario.users(20, second, {user(UserKind::recorded, 240), user(UserKind::job, 7, "rank 1")});
  scenario.users(20, third, {user(UserKind::other, 50, "python notebook")});
  scenario.used(21, first, 131);
  scenario.used(21, second, 252);
  scenario.used(21, third, 51);
  const Store store = scenario.store();
  const Ledger ledger = analyze(store);
  ASSERT_EQ(ledger.devices.size(), 2U);
  EXPECT_THAT(lines_of(ledger.devices[0].moment), ElementsAre("pytorch 100", "context 30"));
  EXPECT_EQ(ledger.devices[0].moment.unexplained_bytes, 1);
  EXPECT_THAT(lines_of(ledger.devices[1].moment), ElementsAre("pytorch 200", "context 40", "process rank 1 7"));
  EXPECT_EQ(ledger.devices[1].moment.unexplained_bytes, 5);

  LedgerOptions unused;
  unused.device = "cuda:2";
  const LedgerMoment asked = analyze(store, unused).devices.at(0).moment;
  EXPECT_THAT(lines_of(asked), ElementsAre("pytorch 0", "context n/a", "process python notebook 50"));
  EXPECT_EQ(asked.unexplained_bytes, 1);

  LedgerOptions missing;
  missing.device = "cuda:3";
  const Symbols symbols(store.definitions);
  EXPECT_THAT(analyze_ledger(store, symbols, missing).error().message,
              HasSubstr("no device 'cuda:3' that a ledger can be of (it has: cuda:0, cuda:1, cuda:2)"));
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

// The context grows while kernels are loaded: the list 1 ns later says more of the sample than that 15 ns before.
TEST(Ledger, TheListNearestInTimeCounts) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(1, "a", 500, kGpu);
  scenario.users(5, gpu, {user(UserKind::recorded, 640)});
  scenario.used(20, gpu, 760);
  scenario.users(21, gpu, {user(UserKind::recorded, 750)});
  scenario.free(30, "a");
  const LedgerMoment peak = analyze_one(scenario).moment;
  EXPECT_EQ(peak.users_at_ns, 21U);
  EXPECT_THAT(lines_of(peak), ElementsAre("pytorch 600", "context 150"));
  EXPECT_EQ(peak.unexplained_bytes, 10);
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
  EXPECT_EQ(device.moment.time_ns, 60U);
  EXPECT_EQ(device.moment.used_bytes, 530U);
  EXPECT_THAT(device.moment.notes, Contains(LedgerNote::covered_peak));
  EXPECT_EQ(device.moment.covered_peak_bytes, 900U);
  std::vector<std::uint64_t> times;
  for (const LedgerPoint& point : device.points) times.push_back(point.time_ns);
  EXPECT_THAT(times, ElementsAre(20, 60));
  EXPECT_THAT(analyze_one(scenario, at(41)).moment.notes, Contains(LedgerNote::slow_call)) << "asked for, it is shown";
  EXPECT_THAT(analyze_one(scenario, at(61)).moment.notes, Not(Contains(LedgerNote::slow_call)));
}

// What 3 ns of the call before it returned do not cover stays the peak.
TEST(Ledger, ALongCallCoversNothingBeforeIt) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.totals(kGpu, 0, 500);
  scenario.allocate(1, "a", 500, kGpu);
  scenario.used(40, gpu, 900);
  scenario.slow_call(45, 3);
  scenario.used(60, gpu, 530);
  scenario.free(70, "a");
  const LedgerMoment peak = analyze_one(scenario).moment;
  EXPECT_EQ(peak.time_ns, 40U);
  EXPECT_THAT(peak.notes, Not(Contains(LedgerNote::covered_peak)));
}

// torch.cuda.empty_cache() gave 400 of 500 back; the allocator says so only with its next event.
TEST(Ledger, WhatPyTorchGaveBackIsTheDriversWord) {
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
  const LedgerMoment ledger = analyze_one(scenario_with(60)).moment;
  EXPECT_THAT(lines_of(ledger), ElementsAre("pytorch 100", "context n/a"));
  EXPECT_EQ(ledger.cached_bytes, 40U);
  EXPECT_EQ(ledger.unexplained_bytes, 30);
  // 150 allocated cannot be in 100: some segment was taken on behalf of PyTorch by somebody else, and its word counts.
  EXPECT_THAT(lines_of(analyze_one(scenario_with(150)).moment), ElementsAre("pytorch 500", "context n/a"));
  Scenario cut_off = scenario_with(60);
  cut_off.definitions.losses.push_back({Loss::Kind::driver_off, 1, ""});
  EXPECT_THAT(lines_of(analyze_one(cut_off).moment), ElementsAre("pytorch 500", "context n/a"));
}

// With cudaMallocAsync as its backend PyTorch reports nothing.
TEST(Ledger, WherePyTorchReportsNothingItsMemoryIsTheDriversWord) {
  Scenario scenario;
  const StackId torch = scenario.stack({scenario.native("/opt/torch/lib/libc10_cuda.so", 1)});
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.allocate(1, "pool", 400, kDriver, torch);
  scenario.used(20, gpu, 520);
  scenario.users(21, gpu, {user(UserKind::recorded, 510)});
  scenario.free(30, "pool");
  const LedgerMoment ledger = analyze_one(scenario).moment;
  EXPECT_THAT(lines_of(ledger), ElementsAre("pytorch 400", "context 110"));
  EXPECT_EQ(ledger.allocated_bytes, std::nullopt);
  EXPECT_EQ(ledger.cached_bytes, std::nullopt);
  EXPECT_EQ(ledger.unexplained_bytes, 10);
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

TEST(HeldAt, GivesWhatATallyHasAfterTheSameEvents) {
  const Scenario scenario = everything();
  const Store store = scenario.store();
  const std::vector<std::uint64_t> times = {0, 5, 10, 10, 13, 19, 20, 30, 31, 40, 99};
  std::size_t visited = 0;
  visit_held(store, times, [&](std::size_t index, const HeldMemory& held) {
    EXPECT_EQ(index, visited++);
    Tally tally;
    for (const Event& event : scenario.events) {
      if (event.time_ns <= times[index]) tally.add(event);
    }
    const HeldMemory expected = tally.held();
    EXPECT_EQ(held.devices, expected.devices) << times[index];
    EXPECT_THAT(held.driver_stacks, ::testing::UnorderedElementsAreArray(expected.driver_stacks)) << times[index];
  });
  EXPECT_EQ(visited, times.size());
}

TEST(MemoryOwner, NamesLibrariesByTheirFiles) {
  EXPECT_EQ(library_name("/opt/torch/lib/libc10_cuda.so"), "PyTorch's allocator");
  EXPECT_EQ(library_name("/opt/torch/lib/libtorch_cuda.so"), "PyTorch");
  EXPECT_EQ(library_name("/usr/lib/libtorch.so.1.13"), "PyTorch");
  EXPECT_EQ(library_name("/usr/lib/libnccl.so.2.21.5"), "NCCL");
  EXPECT_EQ(library_name("/usr/lib/libcublasLt.so.12"), "cuBLAS");
  EXPECT_EQ(library_name("/usr/lib/libcudnn.so.9"), "cuDNN");
  EXPECT_EQ(library_name("/usr/lib/libcudnn_engines_precompiled.so.9"), "cuDNN");
  EXPECT_EQ(library_name("/x/libcublas-f6acd947.so.11"), "cuBLAS") << "as repaired wheels call it";
  EXPECT_EQ(library_name("/x/libtorchvision.so"), "libtorchvision") << "not PyTorch's own";
  EXPECT_EQ(library_name("/x/libmine.so.3"), "libmine");
  EXPECT_EQ(library_name("/x/flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so"), "flash_attn_2_cuda");
  EXPECT_EQ(library_name("/x/program"), "program");
  EXPECT_EQ(library_name("/x/.so"), ".so");
  EXPECT_TRUE(passes_calls_on("/usr/lib/x86_64-linux-gnu/libcuda.so.580.65"));
  EXPECT_TRUE(passes_calls_on("/x/libcudart-9335f6a2.so.12"));
  EXPECT_FALSE(passes_calls_on("/usr/lib/libcudadevrt.so"));
}

TEST(MemoryOwner, IsTheInnermostThatDoesNotOnlyPassOn) {
  Scenario scenario;
  const LocationId python = scenario.python("main", "train.py", 1);
  const LocationId torch = scenario.native("/torch/libtorch_cuda.so", 1);
  const LocationId nccl = scenario.native("/x/libnccl.so.2", 2);
  const LocationId cuda = scenario.native("/x/libcuda.so.1", 3);
  const StackId both = scenario.stack({python, torch, nccl, cuda});
  const StackId only_cuda = scenario.stack({python, cuda});
  const StackId only_python = scenario.stack({python});
  MemoryOwners owners(scenario.definitions);
  EXPECT_EQ(owners.name(owners.of(both)), "NCCL");
  EXPECT_EQ(owners.name(owners.of(only_cuda)), "unknown caller");
  EXPECT_EQ(owners.of(only_python), owners.of(only_cuda));
  EXPECT_EQ(owners.of({}), owners.of(only_cuda));
}

}  // namespace
}  // namespace tidemark
