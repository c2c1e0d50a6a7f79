// The samples that ledgers are made from: the same while a file is read and from a store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "analyze/ledger/replay.h"
#include "store/store.h"
#include "temporary_folder.h"
#include "trace/writer.h"
#include "unit/analyze/ledger_support.h"

namespace tidemark::testing {
namespace {

using ::testing::ElementsAre;
using OnDevice = HeldMemory::OnDevice;

SampledProcess recorded(std::uint64_t bytes) {
  return {123, ProcessKind::recorded, bytes, "python train.py"};
}

TEST(LedgerSamples, PeakAndEndWithWhatWasHeldThen) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  const StackId nccl = scenario.stack({scenario.native("/lib/libnccl.so.2", 1)});
  const StackId cublas = scenario.stack({scenario.native("/lib/libcublas.so.12", 2)});
  scenario.totals(kGpu, 0, 100);
  scenario.used(5, gpu, 50);  // before any event
  scenario.allocate(10, "a", 60, kGpu);
  scenario.allocate(10, "n", 40, kDriver, nccl);
  scenario.used(10, gpu, 300);  // events at that time have happened
  scenario.processes(11, gpu, {recorded(250)});
  scenario.allocate(20, "b", 20, kDriver, cublas);
  scenario.free(21, "n");
  scenario.used(25, gpu, 300);  // not the first of these
  scenario.used(26, gpu, std::nullopt);
  scenario.free(30, "a");
  scenario.used(35, gpu, 120);
  for (const auto& devices : {samples_of(scenario), collect_samples(scenario.store()).devices}) {
    ASSERT_EQ(devices.size(), 1U);
    const DeviceSamples& samples = devices[0];
    EXPECT_TRUE(samples.lists_process);
    EXPECT_EQ(samples.device.cuda_index, 0U);

    ASSERT_TRUE(samples.peak);
    EXPECT_EQ(samples.peak->time_ns, 10U);
    EXPECT_EQ(samples.peak->used_bytes, 300U);
    EXPECT_THAT(samples.peak->held.devices, ElementsAre(OnDevice{60, 100}, OnDevice{40, std::nullopt}));
    EXPECT_THAT(samples.peak->held.driver_stacks, ElementsAre(StackUsage{1, nccl, 40, 1}));
    EXPECT_FALSE(samples.peak->lists->latest);
    ASSERT_TRUE(samples.peak->lists->next);
    EXPECT_EQ(samples.peak->lists->next->sample.time_ns, 11U);

    // The sample at 35 is after the last event, and the one at 26 has no used bytes.
    ASSERT_TRUE(samples.last);
    EXPECT_EQ(samples.last->time_ns, 25U);
    EXPECT_EQ(samples.last->used_bytes, 300U);
    EXPECT_THAT(samples.last->held.devices, ElementsAre(OnDevice{60, 100}, OnDevice{20, std::nullopt}));
    EXPECT_THAT(samples.last->held.driver_stacks, ElementsAre(StackUsage{1, cublas, 20, 1}));
    ASSERT_TRUE(samples.last->lists->latest);
    EXPECT_EQ(samples.last->lists->latest->sample.time_ns, 11U);
    EXPECT_THAT(samples.last->lists->latest->held.driver_stacks, ElementsAre(StackUsage{1, nccl, 40, 1}))
        << "as it was at 11";
    EXPECT_FALSE(samples.last->lists->next);
  }
}

TEST(LedgerSamples, ASampleAtTheTimeOfTheLastEventIsTheEnd) {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.allocate(10, "a", 60);
  scenario.used(10, gpu, 7);
  scenario.used(11, gpu, 8);
  for (const auto& devices : {samples_of(scenario), collect_samples(scenario.store()).devices}) {
    const DeviceSamples& samples = devices.at(0);
    EXPECT_FALSE(samples.lists_process);
    ASSERT_TRUE(samples.last);
    EXPECT_EQ(samples.last->used_bytes, 7U);
    EXPECT_EQ(samples.peak->used_bytes, 8U);
    EXPECT_FALSE(samples.peak->lists->next);
  }
}

TEST(LedgerSamples, WithoutEventsThereIsNoEnd) {
  Scenario scenario;
  scenario.used(10, scenario.sampled_gpu(0, 1000), 7);
  for (const auto& devices : {samples_of(scenario), collect_samples(scenario.store()).devices}) {
    EXPECT_TRUE(devices.at(0).peak);
    EXPECT_FALSE(devices.at(0).last);
  }
}

// In a file, samples are in separate frames, before or after the events of their time.
TEST(LedgerSamples, ReadFromAFileInOrderOfTime) {
  const TemporaryFolder folder;
  auto sink = open_file_sink(folder.at("run.tide"), false);
  ASSERT_TRUE(sink.ok());
  auto writer = TraceWriter::create(std::move(*sink), {});
  ASSERT_TRUE(writer.ok());
  const auto allocate = [&](std::uint64_t time_ns) {
    Event event;
    event.time_ns = time_ns;
    event.address = 4096 * time_ns;
    event.size = time_ns;
    event.device = kGpu;
    EXPECT_TRUE((*writer)->event(event).ok());
  };
  (*writer)->sample(SampledDevice{"nvidia", 0, {}, 0, "H100", "", "", 80});
  (*writer)->sample(DeviceSample{150, {0}, 7, {}, {}, {}, {}});
  EXPECT_TRUE((*writer)->flush().ok());
  allocate(100);
  allocate(200);
  EXPECT_TRUE((*writer)->flush().ok());
  (*writer)->sample(DeviceSample{199, {0}, 9, {}, {}, {}, {}});
  (*writer)->sample(DeviceSample{201, {0}, 8, {}, {}, {}, {}});
  (*writer)->sample(DeviceProcessesSample{202, {0}, {recorded(9)}});
  EXPECT_TRUE((*writer)->flush().ok());
  allocate(300);
  (*writer)->sample(DeviceSample{301, {0}, 1, {}, {}, {}, {}});
  ASSERT_TRUE((*writer)->finish({400, true}).ok());

  LedgerCollector collector;
  const auto overview =
      load_overview(folder.at("run.tide"), {},
                    [&](const SampleRecord& sample, const EventsSoFar& events) { collector.add(sample, events); });
  const auto store = load_store(folder.at("run.tide"));
  ASSERT_TRUE(overview.ok() && store.ok());
  EXPECT_THAT(store->samples.devices[0].time_ns, ElementsAre(150, 199, 201, 301));
  for (const auto& devices : {std::move(collector).finish(overview->last_event_ns), collect_samples(*store).devices}) {
    const DeviceSamples& samples = devices.at(0);
    EXPECT_EQ(samples.peak->time_ns, 199U);
    EXPECT_THAT(samples.peak->held.devices, ElementsAre(OnDevice{100, std::nullopt}));
    EXPECT_EQ(samples.last->time_ns, 201U);
    EXPECT_THAT(samples.last->held.devices, ElementsAre(OnDevice{300, std::nullopt}));
    EXPECT_EQ(samples.last->lists->next->sample.time_ns, 202U);
    EXPECT_TRUE(samples.lists_process);
  }
}

// Recorded memory after damage is unknown, so samples there explain nothing.
TEST(LedgerSamples, EndWhereADamagedFileEnds) {
  const TemporaryFolder folder;
  const std::string path = folder.at("run.tide");
  std::vector<std::uint64_t> flushed;  // size of the file after each
  {
    auto sink = open_file_sink(path, false);
    ASSERT_TRUE(sink.ok());
    auto writer = TraceWriter::create(std::move(*sink), {});
    ASSERT_TRUE(writer.ok());
    (*writer)->sample(SampledDevice{"nvidia", 0, {}, 0, "H100", "", "", 80});
    for (std::uint64_t time_ns = 100; time_ns <= 300; time_ns += 100) {
      Event event;
      event.time_ns = time_ns;
      event.address = 4096 * time_ns;
      event.size = time_ns;
      event.device = kGpu;
      EXPECT_TRUE((*writer)->event(event).ok());
      (*writer)->sample(DeviceSample{time_ns + 1, {0}, time_ns, {}, {}, {}, {}});
      EXPECT_TRUE((*writer)->flush().ok());
      flushed.push_back(std::filesystem::file_size(path));
    }
    ASSERT_TRUE((*writer)->finish({400, true}).ok());
  }
  EXPECT_EQ(collect_samples(*load_store(path)).devices.at(0).peak->time_ns, 301U);
  // The frame of the second event begins where the first flush ended: 16 bytes of header, then its payload.
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(flushed[0]) + 17);
  file.put('\x7F');
  file.close();
  const auto store = load_store(path);
  ASSERT_TRUE(store.ok());
  EXPECT_EQ(store->event_count, 1U);
  EXPECT_THAT(store->samples.devices.at(0).time_ns, ElementsAre(101));
  EXPECT_EQ(collect_samples(*store).devices.at(0).peak->time_ns, 101U);
}

TEST(LedgerSamples, AReplayHoldsWhatATallyHoldsAfterTheSameEvents) {
  const Scenario scenario = everything();
  std::vector<LedgerLookup> lookups;
  for (const std::uint64_t time_ns : {0U, 5U, 10U, 10U, 13U, 19U, 20U, 30U, 31U, 40U, 99U})
    lookups.push_back({time_ns, {}});
  const std::vector<LedgerInput> inputs = collect_samples(scenario.store(), {}, lookups).lookups;
  ASSERT_EQ(inputs.size(), lookups.size());
  for (std::size_t index = 0; index < lookups.size(); ++index) {
    const std::uint64_t time_ns = lookups[index].time_ns;
    EXPECT_EQ(inputs[index].time_ns, time_ns);
    Tally tally;
    for (const Event& event : scenario.events) {
      if (event.time_ns <= time_ns) tally.add(event);
    }
    const HeldMemory expected = tally.held();
    EXPECT_EQ(inputs[index].held.devices, expected.devices) << time_ns;
    EXPECT_THAT(inputs[index].held.driver_stacks, ::testing::UnorderedElementsAreArray(expected.driver_stacks))
        << time_ns;
  }
}

}  // namespace
}  // namespace tidemark::testing
