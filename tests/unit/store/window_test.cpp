// The last part of a longer recording is read as one that begins there.
#include <gtest/gtest.h>

#include "store/store.h"
#include "temporary_folder.h"
#include "trace/live_blocks.h"
#include "trace/writer.h"

namespace tidemark::testing {
namespace {

constexpr Device kGpu{DeviceType::cuda, 0};
constexpr std::uint64_t kBegin = 1'000'000;

Event event_of(EventKind kind, std::uint64_t time_ns, std::uint64_t address, std::uint64_t size,
               std::uint64_t allocated) {
  Event event;
  event.kind = kind;
  event.time_ns = time_ns;
  event.device = kGpu;
  event.address = address;
  event.size = size;
  event.has_totals = true;
  event.total_allocated = allocated;
  event.total_reserved = 4096;
  return event;
}

// Before the window at most 2048 bytes were allocated, and 512 unknown ones exist from the start; the window begins
// with 1536, and has at most 1792.
std::string write_window(const std::string& path) {
  auto sink = open_file_sink(path, false);
  ProcessInfo process;
  process.start_wall_ns = 5'000'000;
  auto writer = TraceWriter::create(std::move(*sink), process);
  LiveBlocks live;
  live.add(event_of(EventKind::allocate, 10, 0x1000, 512, 1024));
  live.add(event_of(EventKind::allocate, 20, 0x2000, 512, 1536));
  live.add(event_of(EventKind::allocate, 30, 0x3000, 512, 2048));
  live.add(event_of(EventKind::free, 40, 0x2000, 0, 1536));
  live.lead_in(kBegin, [&](const Event& event) { EXPECT_TRUE((*writer)->event(event).ok()); });
  HostSample host;
  host.time_ns = kBegin + 50;
  (*writer)->sample(host);
  (*writer)->mark({Mark::Kind::range_begin, 5, (*writer)->string("epoch"), {}});
  (*writer)->mark({Mark::Kind::point, kBegin + 60, (*writer)->string("here"), {}});
  EXPECT_TRUE((*writer)->event(event_of(EventKind::allocate, kBegin + 100, 0x2000, 256, 1792)).ok());
  EXPECT_TRUE((*writer)->event(event_of(EventKind::free, kBegin + 200, 0x1000, 0, 1280)).ok());
  EXPECT_TRUE((*writer)->finish({kBegin + 300, true}).ok());
  return path;
}

void expect_window(const Overview& overview) {
  EXPECT_EQ(overview.window_began_ns, kBegin);
  EXPECT_EQ(overview.end_ns, 300U);
  EXPECT_EQ(overview.event_count, 2U);
  EXPECT_TRUE(overview.pauses.empty());
  EXPECT_EQ(overview.definitions.process.start_wall_ns, 5'000'000 + kBegin);
  ASSERT_EQ(overview.definitions.marks.size(), 2U);
  EXPECT_EQ(overview.definitions.marks[0].time_ns, 0U);
  EXPECT_EQ(overview.definitions.marks[1].time_ns, 60U);
  ASSERT_EQ(overview.devices.size(), 1U);
  const DeviceSummary& device = overview.devices[0];
  EXPECT_EQ(device.allocation_count, 1U);
  EXPECT_EQ(device.free_count, 1U);
  EXPECT_EQ(device.unmatched_free_count, 0U);
  EXPECT_EQ(device.total_bytes_allocated, 256U);
  EXPECT_EQ(device.baseline_bytes, 1536U);
  EXPECT_EQ(device.peak_allocated_bytes, 1792U);
  EXPECT_EQ(device.peak_recorded_bytes, 1280U);
  EXPECT_EQ(device.peak_allocated_at_ns, 100U);
  EXPECT_EQ(device.live_allocated_bytes, 1280U);
  EXPECT_EQ(device.live_recorded_bytes, 768U);
  EXPECT_EQ(device.live_count, 2U);
}

TEST(Window, TimeAndTotalsAreThoseOfTheWindow) {
  const TemporaryFolder folder;
  const std::string path = write_window(folder.at("run.tide"));
  const auto overview = load_overview(path);
  ASSERT_TRUE(overview.ok());
  expect_window(*overview);
  const auto store = load_store(path);
  ASSERT_TRUE(store.ok());
  expect_window(*store);
  ASSERT_EQ(store->blocks.count(), 3U);
  EXPECT_EQ(store->live_changes[0].time_ns, 0U);
  EXPECT_EQ(store->live_changes[1].time_ns, 0U);
  EXPECT_EQ(store->live_changes[2].time_ns, 100U);
  ASSERT_EQ(store->samples.host.time_ns.size(), 1U);
  EXPECT_EQ(store->samples.host.time_ns[0], 50U);
}

}  // namespace
}  // namespace tidemark::testing
