// From the events and samples of recordings to peaks of devices.
#include "monitor/recorded_peaks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kMilli = 1'000'000;
constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
constexpr Device kFirstGpu = {DeviceType::cuda, 0};

class RecordedPeaksTest : public ::testing::Test {
 protected:
  // One process on one GPU: samples every 100 ms of its memory and 300 MiB of others.
  struct Program {
    RecordedPeaks::Recording recording = 0;
    FollowedBatch batch;

    void device(const std::string& uuid) {
      SampledDevice sampled;
      sampled.uuid = uuid;
      sampled.cuda_index = 0;
      batch.samples.emplace_back(sampled);
    }
    void reserved(std::uint64_t ms, std::uint64_t mib) {
      Event event;
      event.time_ns = ms * kMilli;
      event.device = kFirstGpu;
      event.has_totals = true;
      event.total_allocated = event.total_reserved = mib * kMib;
      batch.events.push_back(event);
    }
    void driver(std::uint64_t ms, EventKind kind, std::uint64_t bytes) {
      Event event;
      event.kind = kind;
      event.time_ns = ms * kMilli;
      event.device = {DeviceType::cuda_driver, 0};
      event.size = bytes;
      batch.events.push_back(event);
    }
    void used(std::uint64_t ms, std::uint64_t mib) {
      DeviceSample sample;
      sample.time_ns = ms * kMilli;
      sample.device = SampledDeviceId{0};
      sample.used_bytes = mib * kMib;
      batch.samples.emplace_back(sample);
    }
    void listed(std::uint64_t ms, std::uint32_t device) {
      batch.samples.emplace_back(
          DeviceProcessesSample{ms * kMilli, SampledDeviceId{device}, {{7, ProcessKind::recorded, {}, "python"}}});
    }
  };

  Program program(const std::string& recorder, std::optional<std::uint64_t> started_ms) {
    Program program;
    const auto started = started_ms ? std::optional(*started_ms * kMilli) : std::nullopt;
    program.recording = peaks.begin(recorder, "/run" + std::to_string(++programs), started);
    program.device("GPU-1");
    return program;
  }
  void read(Program& program) {
    peaks.add(program.recording, program.batch);
    program.batch = {};
    peaks.caught_up(program.recording);
  }
  std::vector<std::uint64_t> found() {
    std::vector<std::uint64_t> mib;
    for (const RecordedPeak& peak : peaks.take()) {
      EXPECT_EQ(peak.uuid, "GPU-1");
      mib.push_back(peak.bytes / kMib);
    }
    return mib;
  }

  RecordedPeaks peaks;
  int programs = 0;
};

TEST_F(RecordedPeaksTest, IncludesReservedPeaksBetweenSamples) {
  Program one = program("recorder", 0);
  one.reserved(1, 100);
  read(one);
  one.used(100, 400);
  one.reserved(150, 1100);
  one.reserved(160, 100);
  one.used(200, 400);
  one.reserved(900, 100);
  read(one);
  EXPECT_THAT(found(), ElementsAre(1400U));
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(RecordedPeaksTest, EarlierPeaksDoNotCount) {
  Program one = program("recorder", 0);
  one.reserved(1, 100);
  one.used(100, 400);
  one.reserved(150, 5000);
  one.reserved(160, 100);
  one.used(200, 400);
  one.reserved(1000, 100);
  read(one);
  one.used(1100, 400);
  one.used(1200, 400);
  one.reserved(2000, 100);
  read(one);
  EXPECT_THAT(found(), ElementsAre(400U));
}

TEST_F(RecordedPeaksTest, RecordingsOfOneRecorderAreAddedUpOnItsClock) {
  Program one = program("recorder", 1000);
  Program two = program("recorder", 1500);
  one.reserved(510, 100);
  two.reserved(10, 100);
  read(one);
  read(two);
  one.used(600, 500);
  two.used(100, 500);
  one.reserved(640, 1100);
  two.reserved(145, 2100);  // 5 ms later
  one.reserved(650, 100);
  two.reserved(155, 100);
  one.used(700, 500);
  two.used(200, 500);
  one.reserved(1500, 100);
  two.reserved(1000, 100);
  read(one);
  EXPECT_THAT(found(), IsEmpty()) << "the other one may have more to say";
  read(two);
  EXPECT_THAT(found(), ElementsAre(3500U));
}

TEST_F(RecordedPeaksTest, RecordingsWithoutACommonClockAreNotAddedUp) {
  Program one = program("recorder", {});
  Program two = program("another", {});
  for (Program* each : {&one, &two}) {
    each->reserved(10, 100);
    read(*each);
    each->used(100, 500);
    each->reserved(150, 1100);
    each->reserved(160, 100);
    each->used(200, 500);
    each->reserved(900, 100);
    read(*each);
  }
  EXPECT_THAT(found(), ElementsAre(1500U, 1500U));
}

TEST_F(RecordedPeaksTest, DriverMemoryReplacesReservedMemory) {
  Program one = program("recorder", 0);
  one.driver(1, EventKind::allocate, 100 * kMib);
  one.reserved(1, 100);
  read(one);
  one.used(100, 400);
  one.driver(140, EventKind::allocate, 60 * kMib + 5);  // NCCL; partial units may share memory with others
  one.driver(145, EventKind::allocate, 1000);
  one.driver(150, EventKind::allocate, 20 * kMib);
  one.reserved(150, 120);
  one.driver(160, EventKind::free, 60 * kMib + 5);
  one.used(200, 420);
  one.reserved(900, 120);
  read(one);
  EXPECT_THAT(found(), ElementsAre(480U));
}

TEST_F(RecordedPeaksTest, AProcessThatIsListedOnAnotherDeviceDoesNotCount) {
  Program one = program("recorder", 0);
  one.device("GPU-2");
  one.reserved(1, 100);
  one.listed(50, 1);  // it sets CUDA_VISIBLE_DEVICES itself
  read(one);
  one.used(100, 400);
  one.reserved(150, 1100);
  one.reserved(160, 100);
  one.used(200, 400);
  one.reserved(900, 100);
  read(one);
  EXPECT_THAT(found(), ElementsAre(400U));
}

TEST_F(RecordedPeaksTest, LastChangesOfAProgramCount) {
  Program one = program("recorder", 0);
  one.reserved(1, 100);
  read(one);
  one.used(100, 400);
  one.reserved(150, 1100);
  read(one);
  peaks.end(one.recording);
  EXPECT_THAT(found(), ElementsAre(1400U));
  one.reserved(1000, 1);
  read(one);  // ignored
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(RecordedPeaksTest, SilentRecordingsAreNotWaitedFor) {
  Program one = program("recorder", 0);
  Program two = program("recorder", 0);
  one.reserved(1, 100);
  two.reserved(1, 100);
  read(one);
  read(two);
  one.reserved(7000, 100);
  read(one);
  EXPECT_THAT(found(), IsEmpty());
  one.used(8000, 500);
  one.reserved(8050, 1100);
  one.used(8100, 1500);
  one.reserved(9000, 1100);
  read(one);
  EXPECT_THAT(found(), ElementsAre(1500U));
}

}  // namespace
}  // namespace tidemark
