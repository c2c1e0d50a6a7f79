// Peaks between samples, computed by hand. Samples come every 100 ms; sizes are in GiB.
#include "monitor/device_peaks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

namespace tidemark {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kGib = std::uint64_t{1} << 30;

class DevicePeaksTest : public ::testing::Test {
 protected:
  void take(DevicePeaks::Process process, std::uint64_t ms, std::uint64_t gib) {
    peaks.take(process, ms * kMs, gib * kGib, gib * kGib);
  }
  void sample(std::uint64_t ms, std::uint64_t gib) { peaks.sample(ms * kMs, gib * kGib); }
  std::optional<std::uint64_t> peak_gib() {
    peaks.settle(1'000 * kMs);
    const auto peak = peaks.take_peak();
    EXPECT_EQ(peak.value_or(0) % kGib, 0U);
    return peak ? std::optional(*peak / kGib) : std::nullopt;
  }

  DevicePeaks peaks;
};

TEST_F(DevicePeaksTest, SeesASpikeBetweenTwoSamples) {
  take(1, 0, 2);
  sample(100, 5);  // 3 of others
  take(1, 140, 3);
  take(1, 150, 2);
  sample(200, 5);
  EXPECT_EQ(peak_gib(), 6U);
  EXPECT_EQ(peak_gib(), std::nullopt) << "the same peak twice";
}

TEST_F(DevicePeaksTest, IsExactToTheByte) {
  peaks.take(1, 0, 2 * kGib, kGib);
  peaks.sample(100 * kMs, 5 * kGib + 7);
  peaks.take(1, 140 * kMs, 3 * kGib + 1024, kGib);
  peaks.sample(200 * kMs, 6 * kGib);
  peaks.settle(200 * kMs + 10'000);
  EXPECT_EQ(peaks.take_peak(), 6 * kGib + 1024 + 7);
}

TEST_F(DevicePeaksTest, AnIntervalWithoutChangesIsAsHighAsItsSamples) {
  take(1, 0, 2);
  sample(100, 5);
  sample(200, 7);
  sample(300, 4);
  EXPECT_EQ(peak_gib(), 7U);
}

TEST_F(DevicePeaksTest, SampledSpikeIsCountedOnce) {
  take(1, 0, 2);
  sample(100, 5);
  take(1, 190, 3);
  sample(200, 6);
  take(1, 210, 2);
  sample(300, 5);
  EXPECT_EQ(peak_gib(), 6U);
}

TEST_F(DevicePeaksTest, ChangeInSampleBeforeItsEventIsCountedOnce) {
  take(1, 0, 2);
  sample(100, 5);
  sample(200, 6);   // cudaMalloc has taken it,
  take(1, 201, 3);  // and PyTorch reports it a moment later
  sample(300, 6);
  EXPECT_EQ(peak_gib(), 6U);
}

TEST_F(DevicePeaksTest, ChangeCloseToTheFirstSampleIsUnknown) {
  take(1, 0, 2);
  sample(100, 6);
  take(1, 101, 3);
  take(1, 150, 2);
  sample(200, 5);
  EXPECT_EQ(peak_gib(), 6U);
}

TEST_F(DevicePeaksTest, ASpikeRightAfterASampleIsSeen) {
  take(1, 0, 2);
  sample(100, 5);
  sample(200, 5);
  take(1, 201, 3);
  take(1, 211, 2);
  sample(300, 5);
  EXPECT_EQ(peak_gib(), 6U);
}

TEST_F(DevicePeaksTest, SimultaneousMemoryOfProcessesIsSummed) {
  take(1, 0, 1);
  take(2, 0, 1);
  sample(100, 4);  // 2 of others
  take(1, 120, 4);
  take(1, 130, 1);
  take(2, 140, 3);  // 1 + 3
  take(2, 150, 1);
  sample(200, 4);
  EXPECT_EQ(peak_gib(), 7U);  // 4 + 1 + 2, and not 4 + 3 + 2
  take(1, 220, 4);
  take(2, 230, 3);  // 4 + 3 + 2
  take(1, 240, 1);
  take(2, 250, 1);
  sample(300, 4);
  EXPECT_EQ(peak_gib(), 9U);
}

// The first one may have emptied its cache before the second one took as much: this is not reported.
TEST_F(DevicePeaksTest, OnlyAllocatedBytesOfOtherProcessesAreCertain) {
  peaks.take(1, 0, 6 * kGib, 2 * kGib);
  take(2, 0, 1);
  sample(100, 7);
  take(2, 150, 5);
  sample(200, 7);
  EXPECT_EQ(peak_gib(), 7U);
  take(2, 250, 9);  // at least 9 + 2
  take(2, 260, 5);
  sample(300, 7);
  EXPECT_EQ(peak_gib(), 7U);  // other use of the device: 7 - 6 - 5 < 0
}

TEST_F(DevicePeaksTest, LaterUnrecordedGrowthIsNotAddedToASpike) {
  take(1, 0, 2);
  sample(100, 5);
  take(1, 140, 4);
  take(1, 150, 2);
  sample(200, 6);  // 1 more of others, at some time in between
  EXPECT_EQ(peak_gib(), 7U);
  take(1, 240, 4);
  take(1, 250, 2);
  sample(300, 6);
  EXPECT_EQ(peak_gib(), 8U);
}

TEST_F(DevicePeaksTest, MemoryFreedUnrecordedIsNotAddedToASpike) {
  take(1, 0, 2);
  sample(100, 10);  // 8 of others
  take(1, 140, 4);
  sample(200, 5);  // at most 1 of others is left
  EXPECT_EQ(peak_gib(), 10U);
  take(1, 250, 6);
  sample(300, 7);
  EXPECT_EQ(peak_gib(), 7U);
}

// After empty_cache() an allocator reports nothing until it is used again.
TEST_F(DevicePeaksTest, UnreportedCacheReleaseDoesNotHideTheSpike) {
  peaks.take(1, 0, 2 * kGib, kGib);
  sample(100, 5);
  peaks.take(1, 140 * kMs, 3 * kGib, kGib);
  sample(200, 5);
  sample(300, 5);
  EXPECT_EQ(peak_gib(), 6U);
}

TEST_F(DevicePeaksTest, SamplesDuringASlowCallOfTheDriverAreNoBase) {
  take(1, 0, 2);
  sample(100, 5);
  sample(200, 25);  // while it takes 40
  peaks.doubt(150 * kMs, 260 * kMs);
  take(1, 260, 42);
  sample(300, 45);
  EXPECT_EQ(peak_gib(), 45U);
}

TEST_F(DevicePeaksTest, ProcessesFoundLaterRestart) {
  sample(100, 5);
  peaks.begin_anew(150 * kMs);
  take(1, 150, 4);  // has had it for long
  sample(200, 5);
  take(1, 250, 6);
  take(1, 260, 4);
  sample(300, 5);
  EXPECT_EQ(peak_gib(), 7U);
}

TEST_F(DevicePeaksTest, EndedProcessHasNoMemory) {
  take(1, 0, 4);
  take(2, 0, 1);
  sample(100, 5);
  peaks.end(1, 150 * kMs);
  sample(200, 1);
  for (std::uint64_t ms = 300; ms <= 2'000; ms += 100) sample(ms, 1);
  take(2, 2'050, 3);
  take(2, 2'060, 1);
  sample(2'100, 1);
  EXPECT_EQ(peak_gib(), 5U);
  peaks.settle(3'000 * kMs);
  EXPECT_EQ(peaks.take_peak(), 3 * kGib);
}

TEST_F(DevicePeaksTest, ChangesAfterTheLastSampleCountAtTheEnd) {
  take(1, 0, 2);
  sample(100, 5);
  take(1, 140, 3);
  peaks.end(1, 150 * kMs);
  EXPECT_EQ(peak_gib(), 5U);
  peaks.finish();
  EXPECT_EQ(peak_gib(), 6U);
}

TEST_F(DevicePeaksTest, TheSameSampleOfTwoRecordingsIsOne) {
  take(1, 0, 2);
  sample(100, 5);
  peaks.sample(100 * kMs + 1, 5 * kGib);
  peaks.sample(99 * kMs, 5 * kGib);
  take(1, 140, 3);
  take(1, 150, 2);
  sample(200, 5);
  EXPECT_EQ(peak_gib(), 6U);
}

}  // namespace
}  // namespace tidemark
