// Reserved memory that is in no tensor, over series worked out by hand: cells of one second, 1,000 MiB reserved.
#include "analyze/fragmentation/unused_memory.h"

#include <gtest/gtest.h>

#include <functional>

#include "analyze/fragmentation/fragmentation.h"
#include "base/units.h"
#include "unit/analyze/memory_layout.h"

namespace tidemark::testing {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

// `least_mib(cell)` unused at least; the share on average is the same.
UnusedCells cells_of(std::size_t count, const std::function<double(std::size_t)>& least_mib) {
  UnusedCells made;
  made.changes = 2 * count;
  for (std::size_t index = 0; index < count; ++index) {
    UnusedCell& cell = made.cells.emplace_back();
    cell.end_ns = (index + 1) * kSecond;
    cell.reserved = cell.most_reserved = 1000 * kMiB;
    cell.least = static_cast<std::uint64_t>(least_mib(index) * static_cast<double>(kMiB));
    cell.most_allocated = cell.reserved - cell.least;
    cell.share = static_cast<double>(cell.least) / static_cast<double>(cell.reserved);
  }
  return made;
}

TEST(UnusedMemory, WarmUpIsNoTrend) {
  UnusedCells cells = cells_of(96, [](std::size_t) { return 20; });
  for (std::size_t index = 0; index < 20; ++index) cells.cells[index].share = 0.745;
  const UnusedMemory unused = describe_unused(cells, std::nullopt);
  EXPECT_EQ(unused.pattern, UnusedPattern::stable);
  ASSERT_TRUE(unused.share_trend.has_value());
  EXPECT_EQ(unused.share_trend->begin_ns, 20 * kSecond) << "the first 20 cells are another part";
  EXPECT_EQ(unused.share_trend->end_ns, 96 * kSecond);
  EXPECT_EQ(unused.share_trend->over_recording.low, 0);
  EXPECT_EQ(unused.share_trend->over_recording.high, 0);
  EXPECT_FALSE(unused.share_trend->rises() || unused.share_trend->falls());
  EXPECT_FALSE(unused.trend->rises() || unused.trend->falls());
  EXPECT_EQ(unused.idle, 20 * kMiB);
  EXPECT_DOUBLE_EQ(unused.idle_share(), 0.02);
  EXPECT_FALSE(is_fragmented(unused)) << "less than a tenth";
  EXPECT_FALSE(unused.seconds_to_limit.has_value());
}

TEST(UnusedMemory, GrowthTakesWhatTheDeviceHasLeft) {
  // 2 MiB a second, from 10 to 200 MiB: 500 MiB last for 250 s more.
  UnusedCells cells = cells_of(96, [](std::size_t cell) { return 10 + 2.0 * static_cast<double>(cell); });
  for (UnusedCell& cell : cells.cells) {
    cell.most_allocated = 800 * kMiB;
    cell.reserved = cell.most_reserved = cell.least + cell.most_allocated;
  }
  const UnusedMemory unused = describe_unused(cells, 500 * kMiB);
  EXPECT_EQ(unused.pattern, UnusedPattern::growing);
  ASSERT_TRUE(unused.seconds_to_limit.has_value());
  EXPECT_NEAR(unused.seconds_to_limit->expected, 250, 5);
  EXPECT_LE(unused.seconds_to_limit->earliest, 250);
  EXPECT_TRUE(unused.trend->rises());
  EXPECT_NEAR(unused.trend->change.value / unused.trend->seconds(), 2.0 * static_cast<double>(kMiB),
              0.03 * static_cast<double>(kMiB));
  EXPECT_EQ(unused.reserved, 1000 * kMiB);
  EXPECT_EQ(unused.idle, 200 * kMiB) << "at most 800 MiB are allocated";
  EXPECT_TRUE(is_fragmented(unused));
  EXPECT_FALSE(describe_unused(cells, std::nullopt).seconds_to_limit.has_value()) << "no limit is known";
}

TEST(UnusedMemory, GrowsInSteps) {
  // 15 MiB each 6 s.
  const UnusedCells cells = cells_of(96, [](std::size_t cell) { return 15.0 * static_cast<double>(1 + cell / 6); });
  const UnusedMemory unused = describe_unused(cells, 500 * kMiB);
  EXPECT_EQ(unused.pattern, UnusedPattern::steps);
  ASSERT_TRUE(unused.seconds_to_limit.has_value());
  EXPECT_NEAR(unused.seconds_to_limit->expected, 200, 20) << "500 MiB at 2.5 MiB a second";
}

TEST(UnusedMemory, SawtoothHasAPeriodAndNoTrend) {
  // From 150 to 290 MiB and back, each 8 s.
  const UnusedCells cells = cells_of(96, [](std::size_t cell) { return 150 + 20.0 * static_cast<double>(cell % 8); });
  const UnusedMemory unused = describe_unused(cells, 500 * kMiB);
  EXPECT_EQ(unused.pattern, UnusedPattern::sawtooth);
  EXPECT_NEAR(unused.period_seconds.value(), 8, 0.5);
  EXPECT_EQ(unused.idle, 150 * kMiB) << "850 of 1,000 MiB are allocated in each period";
  ASSERT_TRUE(unused.trend.has_value());
  EXPECT_FALSE(unused.trend->rises() || unused.trend->falls());
  EXPECT_FALSE(unused.seconds_to_limit.has_value());
}

TEST(UnusedMemory, APeakThatDidNotComeBackIsStillReserved) {
  // 900 MiB in the sixth second, 300 MiB from then on.
  const UnusedCells cells = cells_of(96, [](std::size_t cell) { return cell == 5 ? 100 : 700; });
  const UnusedMemory unused = describe_unused(cells, 500 * kMiB);
  EXPECT_EQ(unused.pattern, UnusedPattern::held_peak);
  EXPECT_EQ(unused.peak_allocated, 900 * kMiB);
  EXPECT_EQ(unused.peak_at_ns, 5 * kSecond);
  EXPECT_EQ(unused.later_allocated, 300 * kMiB);
  EXPECT_EQ(unused.idle, 700 * kMiB);
  EXPECT_TRUE(is_fragmented(unused));

  UnusedCells given_back = cells;
  given_back.cells.back().reserved = 400 * kMiB;
  EXPECT_NE(describe_unused(given_back, 500 * kMiB).pattern, UnusedPattern::held_peak);
}

TEST(UnusedMemory, GoesUpAndDownWithoutAPeriod) {
  std::uint64_t state = 1;  // Knuth's generator of 64 bits
  const UnusedCells cells = cells_of(96, [&](std::size_t) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return 200 + 200 * static_cast<double>(state >> 40) / static_cast<double>(1 << 24);
  });
  const UnusedMemory unused = describe_unused(cells, 500 * kMiB);
  EXPECT_EQ(unused.pattern, UnusedPattern::irregular);
  EXPECT_FALSE(unused.seconds_to_limit.has_value());
}

TEST(UnusedMemory, TooFewSamplesAreUnknown) {
  const UnusedMemory unused = describe_unused(cells_of(15, [](std::size_t) { return 500; }), 500 * kMiB);
  EXPECT_EQ(unused.pattern, UnusedPattern::unknown);
  EXPECT_FALSE(unused.share_trend.has_value());
  EXPECT_FALSE(unused.trend.has_value());
  EXPECT_FALSE(is_fragmented(unused));
}

TEST(UnusedCells, HaveTheLeastAndTheMeanOfTheirTime) {
  // An event each millisecond: 100 MiB reserved, then 40 MiB allocated and freed in turns, 32 times each.
  MemoryLayout gpu;
  gpu.reserve(0, 100 * kMiB);
  for (int turn = 0; turn < 32; ++turn) gpu.free(gpu.allocate(0, 40 * kMiB, 40 * kMiB), 40 * kMiB);
  const Store store = gpu.finish();
  const UnusedCells cells = unused_cells(store, 0, 0);
  ASSERT_GE(cells.cells.size(), kFewestUnusedCells);
  EXPECT_EQ(cells.cells.back().end_ns, store.end_ns);
  for (const UnusedCell& cell : cells.cells) {
    EXPECT_EQ(cell.least, 60 * kMiB);
    EXPECT_EQ(cell.most_allocated, 40 * kMiB);
    EXPECT_EQ(cell.most_reserved, 100 * kMiB);
    EXPECT_NEAR(cell.share, 0.8, 0.21) << "0.6 and 1 in turns";
  }
  EXPECT_EQ(cells.cells.back().reserved, 100 * kMiB);
  EXPECT_TRUE(unused_cells(store, 0, store.end_ns - 10'000'000).cells.empty()) << "too few events in 10 ms";
}

TEST(FragmentationAdvice, FollowsFromSizesAndSettings) {
  MemoryLayout gpu;
  gpu.reserve(0, 1000 * kMiB);
  for (std::uint64_t turn = 0; turn < 40; ++turn) {
    const std::uint64_t size = (2 + turn % 10) * kMiB;
    gpu.free(gpu.allocate(0, size, size), size);
  }
  Store store = gpu.finish();
  const UnusedMemory unused = describe_unused(unused_cells(store, 0, 0), std::nullopt);
  EXPECT_EQ(unused.idle, 989 * kMiB);
  auto advice = find_fragmentation_advice(store, 0, unused);
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_EQ(advice[0].kind, FragmentationAdviceKind::expandable_segments);
  EXPECT_EQ(advice[0].sizes, 10U);
  EXPECT_EQ(advice[0].blocks, 40U);
  EXPECT_EQ(advice[0].bytes, 989 * kMiB);

  store.source.allocator_settings.emplace().expandable_segments = true;
  EXPECT_EQ(find_fragmentation_advice(store, 0, unused).at(0).kind, FragmentationAdviceKind::search);

  // A replay decides: a setting that saves 300 MiB is advice, one that saves a megabyte is not.
  Simulation simulation;
  simulation.devices.push_back({kGpu, {}, std::nullopt});
  simulation.devices[0].recorded.peak_reserved = 1000 * kMiB;
  simulation.check.devices.resize(1);
  simulation.check.devices[0].peak_reserved = 1000 * kMiB;
  SimulatedSettings& run = simulation.runs.emplace_back();
  run.settings = "max_split_size_mb:64";
  run.devices.resize(1);
  run.devices[0].peak_reserved = 700 * kMiB;
  simulation.check.devices[0].peak_reserved = 900 * kMiB;
  cite_simulation(simulation, kGpu, advice);
  EXPECT_EQ(advice.at(0).kind, FragmentationAdviceKind::expandable_segments) << "the replay is off by a tenth";
  simulation.check.devices[0].peak_reserved = 1000 * kMiB;
  cite_simulation(simulation, kGpu, advice);
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_EQ(advice[0].kind, FragmentationAdviceKind::settings);
  EXPECT_EQ(advice[0].settings, "max_split_size_mb:64");
  EXPECT_EQ(advice[0].bytes, 300 * kMiB);
  EXPECT_EQ(advice[0].reserved, 1000 * kMiB);
  simulation.runs[0].devices[0].peak_reserved = 999 * kMiB;
  cite_simulation(simulation, kGpu, advice);
  EXPECT_TRUE(advice.empty());
}

}  // namespace
}  // namespace tidemark::testing
