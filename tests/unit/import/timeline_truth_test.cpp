// The timeline's highest points against PyTorch's own counters.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "analyze/timeline/timeline.h"
#include "import/open.h"
#include "unit/import/recorded_snapshots.h"

namespace tidemark::pytorch::testing {
namespace {

class TimelineTruth : public RecordedSnapshot {};

TEST_P(TimelineTruth, KeepsThePeaks) {
  const auto store = open_store(GetParam() + ".pickle.xz");
  ASSERT_TRUE(store.ok());
  const nlohmann::json truth = truth_of(GetParam());
  if (!truth.value("complete", true)) GTEST_SKIP() << "its beginning is not in it";
  const Symbols symbols(store->definitions);
  const auto timeline = analyze_timeline(*store, symbols, {std::nullopt, 60});
  ASSERT_TRUE(timeline.ok());
  const TimelineSeries& series = timeline->series.at(0);
  EXPECT_LE(series.points.size(), 60U);
  TimelinePoint highest;
  highest.active_bytes = highest.reserved_bytes = 0;
  for (const TimelinePoint& point : series.points) {
    highest.allocated_bytes = std::max(highest.allocated_bytes, point.allocated_bytes);
    highest.active_bytes = std::max(highest.active_bytes, point.active_bytes);
    highest.reserved_bytes = std::max(highest.reserved_bytes, point.reserved_bytes);
    EXPECT_GE(point.active_bytes.value_or(0), point.allocated_bytes);
  }
  EXPECT_EQ(highest.allocated_bytes, truth["peak"]["allocated_bytes"].get<std::uint64_t>());
  EXPECT_EQ(highest.active_bytes, truth["peak"]["active_bytes"].get<std::uint64_t>());
  EXPECT_EQ(highest.reserved_bytes, truth["peak"]["reserved_bytes"].get<std::uint64_t>());
}

INSTANTIATE_TEST_SUITE_P(Settings, TimelineTruth, ::testing::ValuesIn(snapshots_of_settings()), test_name);

}  // namespace
}  // namespace tidemark::pytorch::testing
