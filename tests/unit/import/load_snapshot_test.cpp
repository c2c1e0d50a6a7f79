// Snapshots as overviews and stores, against the counters of PyTorch's allocator and a small file worked out by hand.
#include "import/pytorch_snapshot/load_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "base/units.h"
#include "import/open.h"
#include "store/symbols.h"
#include "unit/import/recorded_snapshots.h"

namespace tidemark::pytorch::testing {
namespace {

using ::testing::IsEmpty;

const std::string kSmall = TIDEMARK_SNAPSHOTS "/small.pickle";

void expect_counter(const nlohmann::json& truth, const char* name, std::uint64_t actual) {
  if (truth.contains(name)) {
    EXPECT_EQ(actual, truth.at(name).get<std::uint64_t>()) << name;
  }
}

class LoadedSnapshot : public RecordedSnapshot {};

TEST_P(LoadedSnapshot, PeaksAreThoseOfPyTorch) {
  const auto overview = open_overview(GetParam() + ".pickle.xz");
  ASSERT_TRUE(overview.ok()) << overview.error().message;
  const nlohmann::json truth = truth_of(GetParam());
  ASSERT_FALSE(overview->devices.empty());
  const DeviceSummary& device = overview->devices.front();
  const nlohmann::json peak = truth.value("peak", nlohmann::json::object());
  expect_counter(peak, "allocated_bytes", device.peak_allocated_bytes);
  expect_counter(peak, "active_bytes", device.peak_active_bytes.value());
  expect_counter(peak, "reserved_bytes", device.peak_reserved_bytes.value());
  expect_counter(truth, "peak_alloc", device.peak_allocated_bytes);
  expect_counter(truth, "active_peak", device.peak_active_bytes.value());
  expect_counter(truth, "peak_reserved", device.peak_reserved_bytes.value());
  expect_counter(truth, "alloc_count", device.allocation_count);
  expect_counter(truth, "ooms", overview->out_of_memory.size());
  EXPECT_EQ(device.peak_recorded_bytes, device.peak_allocated_bytes) << "every block is known";
}

// Totals from the columns, step by live_change.
TEST_P(LoadedSnapshot, StoreMatchesTheOverview) {
  const auto overview = open_overview(GetParam() + ".pickle.xz");
  const auto store = open_store(GetParam() + ".pickle.xz");
  ASSERT_TRUE(overview.ok() && store.ok());
  ASSERT_EQ(store->devices.size(), overview->devices.size());
  const Blocks& blocks = store->blocks;
  EXPECT_EQ(blocks.requested.size(), blocks.count());
  EXPECT_EQ(blocks.stream.size(), blocks.count());
  EXPECT_EQ(blocks.pool.size(), blocks.count());
  EXPECT_TRUE(
      std::is_sorted(store->live_changes.begin(), store->live_changes.end(),
                     [](const LiveChange& left, const LiveChange& right) { return left.time_ns < right.time_ns; }));
  for (std::size_t block = 0; block < blocks.count(); ++block) {
    ASSERT_LE(blocks.requested[block], blocks.size[block]);
    ASSERT_LT(blocks.stream[block], store->streams.size());
    ASSERT_LT(blocks.pool[block], store->pools.size());
  }
  for (std::size_t index = 0; index < store->devices.size(); ++index) {
    std::uint64_t live = 0;
    std::uint64_t peak = 0;
    for (const LiveChange& live_change : store->live_changes) {
      if (blocks.device[live_change.block.value] != index) continue;
      const std::uint64_t size = blocks.size[live_change.block.value];
      live = live_change.birth ? live + size : live - size;
      peak = std::max(peak, live);
    }
    EXPECT_EQ(live, overview->devices[index].live_allocated_bytes);
    EXPECT_EQ(peak, overview->devices[index].peak_allocated_bytes);
    std::uint64_t reserved = 0;
    std::uint64_t pending = 0;
    for (const TotalsChange& change : store->totals_changes) {
      if (change.device != index) continue;
      reserved = std::max(reserved, change.reserved);
      pending = change.pending;
      EXPECT_EQ(change.unrecorded, 0);
    }
    EXPECT_EQ(reserved, overview->devices[index].peak_reserved_bytes);
    EXPECT_EQ(live + pending, overview->devices[index].end_active_bytes);
  }
}

// At every change: reserved memory adds up, and live and delayed blocks lie in it, without overlap.
TEST_P(LoadedSnapshot, BlocksLieInSegments) {
  const auto loaded = open_store(GetParam() + ".pickle.xz");
  ASSERT_TRUE(loaded.ok());
  const Store& store = *loaded;
  ASSERT_FALSE(store.segment_changes.empty());
  std::map<std::uint64_t, std::uint64_t> reserved;  // address → size, neighbours joined
  std::uint64_t bytes = 0;
  std::uint64_t peak = 0;
  for (const SegmentChange& change : store.segment_changes) {
    const std::uint64_t end = change.address + change.size;
    if (change.reserved) {
      auto at = reserved.emplace(change.address, change.size).first;
      if (const auto next = reserved.find(end); next != reserved.end()) {
        at->second += next->second;
        reserved.erase(next);
      }
      if (at != reserved.begin() && std::prev(at)->first + std::prev(at)->second == at->first) {
        std::prev(at)->second += at->second;
        reserved.erase(at);
      }
      bytes += change.size;
    } else {
      const auto around = std::prev(reserved.upper_bound(change.address));
      const std::uint64_t around_end = around->first + around->second;
      ASSERT_GE(around_end, end);
      around->second = change.address - around->first;
      if (around->second == 0) reserved.erase(around);
      if (around_end != end) reserved.emplace(end, around_end - end);
      bytes -= change.size;
    }
    peak = std::max(peak, bytes);
  }
  const DeviceSummary& device = store.devices.front();
  EXPECT_EQ(bytes, device.end_reserved_bytes);
  EXPECT_EQ(peak, device.peak_reserved_bytes);

  std::map<std::uint64_t, std::uint64_t> used;
  std::uint64_t pending = 0;
  for (std::size_t block = 0; block < store.blocks.count(); ++block) {
    if (store.blocks.death_change[block] == Blocks::kAlive)
      used[store.blocks.address[block]] = store.blocks.size[block];
  }
  for (const PendingFree& held : store.pending_frees) {
    if (held.until_ns != PendingFree::kEnd) {
      EXPECT_GE(held.until_change_count, store.blocks.death_change[held.block.value]);
      continue;
    }
    EXPECT_TRUE(used.emplace(store.blocks.address[held.block.value], store.blocks.size[held.block.value]).second);
    pending += store.blocks.size[held.block.value];
  }
  EXPECT_EQ(device.live_allocated_bytes + pending, device.end_active_bytes);
  std::uint64_t free_from = 0;
  for (const auto& [address, size] : used) {
    EXPECT_GE(address, free_from) << "no two blocks overlap";
    free_from = address + size;
    const auto around = std::prev(reserved.upper_bound(address));
    EXPECT_LE(free_from, around->first + around->second);
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, LoadedSnapshot, ::testing::ValuesIn(snapshots_of_settings()), test_name);
INSTANTIATE_TEST_SUITE_P(Shared, LoadedSnapshot,
                         ::testing::ValuesIn(shared_snapshots({"healthy", "oom", "varlen", "varlen_expandable",
                                                               "varlen_max_split_64", "lora_python_stacks",
                                                               "lora_native_stacks"})),
                         test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LoadedSnapshot);

// tests/data/snapshots/make_small.py describes its content.
TEST(LoadSnapshot, GivesTheSmallSnapshotAsWorkedOutByHand) {
  const auto loaded = open_store(kSmall);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Store& store = *loaded;
  EXPECT_EQ(store.source.kind, SourceKind::pytorch_snapshot);
  ASSERT_TRUE(store.source.allocator_settings);
  EXPECT_EQ(store.source.allocator_settings->text, "max_split_size_mb:64");
  EXPECT_THAT(store.source.issues, IsEmpty());
  EXPECT_EQ(store.event_count, 15U);
  EXPECT_EQ(store.definitions.process.stack_mode, "both");
  EXPECT_EQ(store.definitions.process.start_wall_ns, 1'795'000'000'000'000'000U);
  EXPECT_EQ(store.end_ns, 1'200'000U) << "thirteen entries of device 0, 100 us apart";

  ASSERT_EQ(store.devices.size(), 2U);
  const DeviceSummary& first = store.devices[0];
  EXPECT_EQ(to_string(first.device), "cuda:0");
  EXPECT_EQ(first.peak_allocated_bytes, 18 * kMiB + 1024);
  EXPECT_EQ(first.peak_allocated_at_ns, 500'000U);
  EXPECT_EQ(first.peak_active_bytes, 18 * kMiB + 1024);
  EXPECT_EQ(first.peak_reserved_bytes, 22 * kMiB);
  EXPECT_EQ(first.peak_reserved_at_ns, 400'000U);
  EXPECT_EQ(first.live_allocated_bytes, 4 * kMiB);
  EXPECT_EQ(first.end_active_bytes, 12 * kMiB) << "8 MiB were given back, and another stream still uses them";
  EXPECT_EQ(first.end_reserved_bytes, 20 * kMiB);
  EXPECT_EQ(first.allocation_count, 4U);
  EXPECT_EQ(first.free_count, 3U);
  EXPECT_EQ(first.baseline_bytes, 0U);
  EXPECT_EQ(store.devices[1].peak_allocated_bytes, 3 * kMiB);
  EXPECT_EQ(store.devices[1].peak_reserved_bytes, 20 * kMiB);

  ASSERT_EQ(store.out_of_memory.size(), 1U);
  EXPECT_EQ(store.out_of_memory[0].requested, 40 * kMiB);
  EXPECT_EQ(store.out_of_memory[0].time_ns, 600'000U);
  EXPECT_EQ(store.out_of_memory[0].allocated, 18 * kMiB + 1024);
  EXPECT_EQ(store.out_of_memory[0].reserved, 22 * kMiB);
  EXPECT_EQ(store.out_of_memory[0].device_free, 3 * kMiB);
  EXPECT_EQ(store.out_of_memory[0].change_count, 5U) << "four blocks of device 0, one of device 1";
  EXPECT_EQ(store.out_of_memory[0].segment_changes, 3U) << "likewise";
  EXPECT_EQ(store.streams[store.out_of_memory[0].stream.value()], 0U);
  EXPECT_EQ(store.out_of_memory[0].pool, std::nullopt) << "the entry names none";
  EXPECT_EQ(store.segment_changes_before, 0U);

  std::map<std::uint64_t, std::uint64_t> requested;
  for (std::size_t block = 0; block < store.blocks.count(); ++block) {
    requested[store.blocks.size[block]] = store.blocks.requested[block];
  }
  const std::map<std::uint64_t, std::uint64_t> expected = {
      {4 * kMiB, 4 * kMiB}, {8 * kMiB, 8 * kMiB - 100}, {6 * kMiB, 6 * kMiB}, {1024, 1000}, {3 * kMiB, 3 * kMiB}};
  EXPECT_EQ(requested, expected);

  Symbols symbols(store.definitions);
  bool native = false;
  for (std::uint32_t location = 0; location < store.definitions.locations.size(); ++location) {
    const FrameName& frame = symbols.name(LocationId{location});
    if (frame.kind != Location::Kind::native) continue;
    native = true;
    EXPECT_EQ(frame.function, "at::native::empty_cuda(c10::ArrayRef<long>)");
    EXPECT_EQ(frame.file, "") << "PyTorch does not know it";
  }
  EXPECT_TRUE(native);
}

TEST(LoadSnapshot, BlocksFromBeforeTheTraceAreNoAllocations) {
  const auto store = open_store(TIDEMARK_SNAPSHOTS "/late.pickle.xz");
  ASSERT_TRUE(store.ok());
  const DeviceSummary& device = store->devices.front();
  const auto first =
      std::find_if(store->live_changes.begin(), store->live_changes.end(),
                   [](const LiveChange& live_change) { return live_change.time_ns != 0 || !live_change.birth; });
  const auto before = static_cast<std::uint64_t>(first - store->live_changes.begin());
  EXPECT_GT(before, 0U);
  std::uint64_t bytes = 0;
  for (std::size_t block = 0; block < before; ++block) bytes += store->blocks.size[block];
  EXPECT_EQ(device.baseline_bytes, bytes);
  ASSERT_GT(store->segment_changes_before, 0U);
  EXPECT_LT(store->segment_changes_before, store->segment_changes.size());
  EXPECT_EQ(store->segment_changes[store->segment_changes_before - 1].change_count, 0U) << "blocks lie in segments";
  EXPECT_EQ(device.allocation_count + before, store->blocks.count());
  EXPECT_FALSE(store->source.issues.empty());
  EXPECT_TRUE(facts_of(store->source.issues.front().id).incomplete);
}

TEST(LoadSnapshot, AnErrorNamesTheFile) {
  const std::string path = ::testing::TempDir() + "tidemark_not_a_snapshot." + std::to_string(::getpid());
  std::ofstream(path, std::ios::binary) << "\x80\x04\x8c\x02os\x8c\x06system\x93.";
  for (const std::string& message : {open_overview(path).error().message, open_store(path).error().message}) {
    EXPECT_EQ(message.rfind(path, 0), 0U) << message;
    EXPECT_NE(message.find("refused"), std::string::npos) << message;
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tidemark::pytorch::testing
