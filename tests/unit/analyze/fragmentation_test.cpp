// Fragmentation of a device with memory laid out by hand.
#include "analyze/fragmentation/fragmentation.h"

#include <gtest/gtest.h>

#include "base/units.h"
#include "unit/analyze/memory_layout.h"

namespace tidemark::testing {
namespace {

FragmentationDevice fragmentation_of(const Store& store, const FragmentationOptions& options = {}) {
  Symbols symbols(store.definitions);
  auto result = analyze_fragmentation(store, symbols, options);
  EXPECT_TRUE(result.ok());
  return result->devices.at(0);
}

TEST(Fragmentation, MeasuresAtThePeaksAndAtTheEnd) {
  MemoryLayout gpu;
  gpu.reserve(0, 20 * kMiB);
  const SlotId first = gpu.allocate(0, 4 * kMiB, 4 * kMiB - 100);
  const SlotId middle = gpu.allocate(4 * kMiB, 6 * kMiB, 6 * kMiB);
  gpu.allocate(10 * kMiB, 2 * kMiB, 2 * kMiB - 1);  // peak: 12 MiB
  gpu.free(first, 4 * kMiB);
  gpu.free(middle, 6 * kMiB, true);
  gpu.reserve(100 * kMiB, 30 * kMiB);
  gpu.complete(middle, 6 * kMiB);
  const Store store = gpu.finish();
  const FragmentationDevice device = fragmentation_of(store);

  const FragmentationMeasures& peak = device.at_peak_allocated.value();
  EXPECT_EQ(peak.time_ns, 4'000'000U);
  EXPECT_EQ(peak.allocated, 12 * kMiB);
  EXPECT_EQ(peak.reserved, 20 * kMiB);
  EXPECT_EQ(peak.free, 8 * kMiB);
  EXPECT_EQ(peak.free_blocks, 1U);
  EXPECT_EQ(peak.rounding, 101U);
  EXPECT_EQ(peak.inactive_split, 8 * kMiB);
  EXPECT_EQ(peak.releasable, 0U);
  EXPECT_DOUBLE_EQ(peak.unused_share().value(), 0.4);
  EXPECT_DOUBLE_EQ(peak.external_share().value(), 0);

  const FragmentationMeasures& reserved = device.at_peak_reserved.value();
  EXPECT_EQ(reserved.time_ns, 7'000'000U);
  EXPECT_EQ(reserved.allocated, 2 * kMiB);
  EXPECT_EQ(reserved.active, 8 * kMiB) << "6 MiB are still in use by another stream";
  EXPECT_EQ(reserved.reserved, 50 * kMiB);
  EXPECT_EQ(reserved.free, 42 * kMiB);
  EXPECT_EQ(reserved.free_blocks, 3U);
  EXPECT_EQ(reserved.largest_free, 30 * kMiB);
  EXPECT_EQ(reserved.releasable, 30 * kMiB);
  EXPECT_EQ(reserved.inactive_split, 12 * kMiB);
  EXPECT_DOUBLE_EQ(reserved.external_share().value(), 1 - 30.0 / 42);

  EXPECT_EQ(device.at_end.active, 2 * kMiB);
  EXPECT_EQ(device.at_end.free_blocks, 3U) << "what was pending joined the free piece before it";
  EXPECT_DOUBLE_EQ(device.peak_share().value(), 1 - 12.0 / 50);
  EXPECT_EQ(device.over_time.size(), 12U);
  EXPECT_EQ(device.over_time.back().reserved, 50 * kMiB);

  FragmentationOptions of_window;
  of_window.begin_ns = 4'000'000;
  of_window.samples = 2;
  const std::vector<FragmentationMeasures> since = fragmentation_of(store, of_window).over_time;
  ASSERT_EQ(since.size(), 2U);
  EXPECT_EQ(since[0].time_ns, 6'000'000U);
  EXPECT_EQ(since[0].allocated, 2 * kMiB);
  EXPECT_EQ(since[1].time_ns, 8'000'000U);
}

TEST(Fragmentation, NeighboursOfAnExpandableSegmentAreOne) {
  MemoryLayout gpu;
  gpu.reserve(0, 2 * kMiB, true);
  gpu.reserve(4 * kMiB, 2 * kMiB, true);
  gpu.allocate(0, kMiB, kMiB);
  gpu.reserve(2 * kMiB, 2 * kMiB, true);
  const Store store = gpu.finish();
  const auto map = segment_map(store, 0, position_at(store, 0, Moment{Moment::Kind::end, 0, 0}).value());
  ASSERT_EQ(map.size(), 1U);
  EXPECT_EQ(map[0].size, 6 * kMiB);
  EXPECT_EQ(map[0].bytes(MapBlock::State::free), 5 * kMiB);
  const FragmentationDevice device = fragmentation_of(store);
  EXPECT_EQ(device.at_end.inactive_split, 0U) << "pages of expandable segments can be given back one by one";
}

TEST(Fragmentation, PartsOfAnExpandableSegmentGoAway) {
  MemoryLayout gpu;
  gpu.reserve(0, 10 * kMiB, true);
  gpu.allocate(0, kMiB, kMiB);
  gpu.release(4 * kMiB, 2 * kMiB, true);
  const Store store = gpu.finish();
  const auto map = segment_map(store, 0, position_at(store, 0, Moment{Moment::Kind::end, 0, 0}).value());
  ASSERT_EQ(map.size(), 2U);
  EXPECT_EQ(map[0].size, 4 * kMiB);
  EXPECT_EQ(map[1].address, 6 * kMiB);
  EXPECT_EQ(map[1].size, 4 * kMiB);
}

TEST(Fragmentation, NamesTheStacksThatPinSegments) {
  constexpr StackId kLeft{1};
  constexpr StackId kRight{2};
  MemoryLayout gpu;
  gpu.reserve(0, 20 * kMiB);  // both hold it: neither pins it alone
  gpu.allocate(0, 2 * kMiB, 2 * kMiB, kLeft);
  gpu.allocate(10 * kMiB, 2 * kMiB, 2 * kMiB, kRight);
  gpu.reserve(100 * kMiB, 20 * kMiB);
  gpu.allocate(100 * kMiB, 4 * kMiB, 4 * kMiB, kRight);
  gpu.reserve(200 * kMiB, 2 * kMiB);  // full
  gpu.allocate(200 * kMiB, 2 * kMiB, 2 * kMiB, kLeft);
  gpu.reserve(300 * kMiB, 8 * kMiB);  // empty
  FragmentationOptions options;
  options.at.kind = Moment::Kind::end;
  const FragmentationDevice device = fragmentation_of(gpu.finish(), options);
  ASSERT_EQ(device.pinning.size(), 2U);
  EXPECT_EQ(device.pinning[0].pinned_free_bytes, 16 * kMiB);
  EXPECT_EQ(device.pinning[0].segments, 2U);
  EXPECT_EQ(device.pinning[0].blocks, 2U);
  EXPECT_EQ(device.pinning[0].bytes, 6 * kMiB);
  EXPECT_EQ(device.pinning[1].pinned_free_bytes, 0U);
  EXPECT_EQ(device.empty_segments, 1U);
  ASSERT_EQ(device.segments.size(), 2U) << "the full one is not listed";
  EXPECT_EQ(device.segments[0].address, 0U) << "two are alike: the first";
}

TEST(Fragmentation, CountsSizesByPowersOfTwo) {
  MemoryLayout gpu;
  gpu.reserve(0, 2 * kMiB);
  gpu.free(gpu.allocate(0, 1024, 1024), 1024);
  gpu.allocate(0, 512, 1);
  gpu.allocate(512, 2047, 2047);
  const FragmentationDevice device = fragmentation_of(gpu.finish());
  ASSERT_EQ(device.sizes.size(), 3U);
  EXPECT_EQ(device.sizes[0].from, 0U);
  EXPECT_EQ(device.sizes[0].live_blocks, 1U);
  EXPECT_EQ(device.sizes[1].from, 1024U);
  EXPECT_EQ(device.sizes[1].allocations, 2U);
  EXPECT_EQ(device.sizes[1].live_blocks, 1U);
  EXPECT_EQ(device.sizes[1].live_bytes, 2047U);
  EXPECT_EQ(device.sizes[2].from, kMiB);
  EXPECT_EQ(device.sizes[2].free_blocks, 1U);
  EXPECT_EQ(device.sizes[2].free_bytes, 2 * kMiB - 2559);
}

TEST(Fragmentation, ARecordingWithoutSegmentsSaysWhatItKnows) {
  StoreBuilder builder;
  Event event;
  event.device = kGpu;
  event.slot = SlotId{0};
  event.size = 3 * kMiB;
  event.has_totals = true;
  event.total_allocated = 4 * kMiB;  // one of them was there before
  event.total_reserved = 10 * kMiB;
  builder.add(event);
  const FragmentationDevice device = fragmentation_of(std::move(builder).finish("recording", {}));
  EXPECT_FALSE(device.knows_segments);
  EXPECT_EQ(device.at_end.allocated, 4 * kMiB);
  EXPECT_EQ(device.at_end.reserved, 10 * kMiB);
  EXPECT_DOUBLE_EQ(device.at_end.unused_share().value(), 0.6);
  EXPECT_FALSE(device.at_end.free.has_value());
  EXPECT_FALSE(device.at_peak_reserved.has_value());
  EXPECT_FALSE(device.peak_share().has_value());
}

}  // namespace
}  // namespace tidemark::testing
