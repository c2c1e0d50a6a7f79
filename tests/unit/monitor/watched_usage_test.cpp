#include "monitor/watched_usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tidemark {
namespace {

using ::testing::ElementsAre;

TEST(WatchedUsage, KeepsSamplesAsTheyAreWhileThereIsRoom) {
  WatchedUsage used(4);
  EXPECT_TRUE(used.empty());
  for (std::uint64_t n = 1; n <= 4; ++n) used.add(n * 10, n * 100);
  ASSERT_EQ(used.points().size(), 4U);
  EXPECT_EQ(used.points()[1], (WatchedUsagePoint{20, 20, 200, 200, 200}));
  EXPECT_EQ(used.first_bytes(), 100U);
  EXPECT_EQ(used.last_bytes(), 400U);
  EXPECT_EQ(used.mean_bytes(), 250.0);
}

TEST(WatchedUsage, JoinsNeighboursWhenItIsFull) {
  WatchedUsage used(4);
  const std::vector<std::uint64_t> bytes = {5, 1, 7, 3, 9, 2};
  for (std::size_t n = 0; n < bytes.size(); ++n) used.add(n, bytes[n]);
  // (5 1) (7 3) were joined for the fifth, which takes the sixth in.
  ASSERT_EQ(used.points().size(), 3U);
  EXPECT_EQ(used.points()[0], (WatchedUsagePoint{0, 1, 1, 5, 1}));
  EXPECT_EQ(used.points()[1], (WatchedUsagePoint{2, 3, 3, 7, 3}));
  EXPECT_EQ(used.points()[2], (WatchedUsagePoint{4, 5, 2, 9, 2}));
  EXPECT_EQ(used.last_sample(), (WatchedSample{5, 2, 2}));
}

TEST(WatchedUsage, PeaksBetweenSamplesCount) {
  WatchedUsage used(2);
  used.add(1, 10, 50);
  used.add(2, 20, 15);  // a peak below the current use is ignored
  EXPECT_EQ(used.peak_bytes(), 50U);
  EXPECT_EQ(used.peak_at_ns(), 1U);
  EXPECT_EQ(used.points()[1].high_bytes, 20U);
}

TEST(WatchedUsage, LatePeaksBelongToTheLatestSample) {
  WatchedUsage used(4);
  used.add_peak(70);  // from before the first sample
  EXPECT_TRUE(used.empty());
  used.add(1, 10);
  EXPECT_TRUE(used.peak_is_sampled());
  used.add_peak(50);
  used.add_peak(30);
  EXPECT_EQ(used.peak_bytes(), 50U);
  EXPECT_EQ(used.peak_at_ns(), 1U);
  EXPECT_FALSE(used.peak_is_sampled());
  EXPECT_EQ(used.points()[0], (WatchedUsagePoint{1, 1, 10, 50, 10}));
  EXPECT_EQ(used.late_peak_bytes(), 0U);
  used.add(2, 20);
  EXPECT_EQ(used.late_peak_bytes(), 50U) << "who takes each sample when it comes gets it with the next one";
  EXPECT_EQ(used.points()[1].high_bytes, 20U);
  used.add(3, 60);
  EXPECT_EQ(used.late_peak_bytes(), 0U);
  EXPECT_TRUE(used.peak_is_sampled());
  EXPECT_EQ(used.first_bytes(), 10U);
  EXPECT_EQ(used.mean_bytes(), 30.0);
}

TEST(WatchedUsage, TheNewestSamplesAreThereByThemselves) {
  WatchedUsage used(2);
  for (std::uint64_t n = 1; n <= 3; ++n) used.add(n, n * 10);
  used.add_peak(70);
  EXPECT_THAT(used.newest(), ElementsAre(WatchedSample{1, 10, 10}, WatchedSample{2, 20, 20}, WatchedSample{3, 30, 70}));
  for (std::uint64_t n = 4; n <= 2 * WatchedUsage::kNewest; ++n) used.add(n, 5);
  EXPECT_EQ(used.newest().size(), WatchedUsage::kNewest);
  EXPECT_EQ(used.newest().front().time_ns, WatchedUsage::kNewest + 1);
  EXPECT_EQ(used.newest().back(), used.last_sample());
}

TEST(WatchedUsage, ExtremesOfAMillionSamplesStayInFewPoints) {
  WatchedUsage used(64);
  constexpr std::uint64_t kSamples = 1'000'000;
  for (std::uint64_t n = 0; n < kSamples; ++n) {
    used.add(n, n == 123'456 ? 999'999 : n == 654'321 ? 1 : 1000 + n % 7);
  }
  EXPECT_LE(used.points().size(), 64U);
  EXPECT_GE(used.points().size(), 32U);
  EXPECT_EQ(used.sample_count(), kSamples);
  EXPECT_EQ(used.peak_bytes(), 999'999U);
  EXPECT_EQ(used.peak_at_ns(), 123'456U);
  std::uint64_t lowest = 1000;
  std::uint64_t highest = 0;
  std::uint64_t before = 0;
  for (const WatchedUsagePoint& point : used.points()) {
    lowest = std::min(lowest, point.low_bytes);
    highest = std::max(highest, point.high_bytes);
    EXPECT_EQ(point.begin_ns, before);  // no gap between two points
    before = point.end_ns + 1;
  }
  EXPECT_EQ(lowest, 1U);
  EXPECT_EQ(highest, 999'999U);
  EXPECT_EQ(used.end_ns(), kSamples - 1);
}

}  // namespace
}  // namespace tidemark
