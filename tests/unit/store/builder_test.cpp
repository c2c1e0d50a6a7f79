#include "store/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "trace/writer.h"
#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kGpu;
using testing::Scenario;

TEST(StoreBuilder, KeepsBlocksAndSteps) {
  Scenario scenario;
  scenario.allocate(10, "a", 100);
  scenario.allocate(20, "b", 50);
  scenario.free(30, "a");
  scenario.free_unknown(40, testing::kCpu);
  const Store store = scenario.store();
  EXPECT_THAT(store.blocks.size, ElementsAre(100, 50));
  EXPECT_THAT(store.blocks.birth_change, ElementsAre(0, 1));
  EXPECT_THAT(store.blocks.death_change, ElementsAre(2, Blocks::kAlive));
  ASSERT_EQ(store.live_changes.size(), 3U);
  EXPECT_EQ(store.live_changes[2].time_ns, 30U);
  EXPECT_EQ(store.live_changes[2].block.value, 0U);
  EXPECT_FALSE(store.live_changes[2].birth);
  EXPECT_EQ(store.event_count, 4U);
}

TEST(StoreBuilder, ABlockLivesFromAfterItsBirthToItsDeath) {
  Scenario scenario;
  scenario.allocate(10, "a", 100);
  scenario.allocate(20, "b", 50);
  scenario.free(30, "a");
  const Store store = scenario.store();
  EXPECT_FALSE(store.blocks.alive(0, 0));
  EXPECT_TRUE(store.blocks.alive(0, 1));
  EXPECT_TRUE(store.blocks.alive(0, 2));
  EXPECT_FALSE(store.blocks.alive(0, 3));
  EXPECT_TRUE(store.blocks.alive(1, 3));
}

TEST(StoreBuilder, CountsStepsUpToATime) {
  Scenario scenario;
  scenario.allocate(10, "a", 1);
  scenario.allocate(20, "b", 1);
  scenario.allocate(20, "c", 1);
  const Store store = scenario.store();
  EXPECT_EQ(store.changes_until(9), 0U);
  EXPECT_EQ(store.changes_until(10), 1U);
  EXPECT_EQ(store.changes_until(20), 3U);
}

TEST(StoreBuilder, RecordsTotalsBeyondTheBlocks) {
  Scenario scenario;
  scenario.totals(kGpu, 1000, 4096);
  scenario.allocate(10, "a", 500, kGpu);
  scenario.allocate(20, "b", 500, kGpu);  // changes nothing beyond the block
  scenario.free_unknown(30, kGpu, 300);
  const Store store = scenario.store();
  ASSERT_EQ(store.totals_changes.size(), 2U);
  EXPECT_EQ(store.totals_changes[0].unrecorded, 1000);
  EXPECT_EQ(store.totals_changes[0].change_count, 1U);
  EXPECT_TRUE(store.totals_changes[0].with_live_change);
  EXPECT_EQ(store.totals_changes[1].unrecorded, 700);
  EXPECT_EQ(store.totals_changes[1].change_count, 2U);
  EXPECT_FALSE(store.totals_changes[1].with_live_change);
}

class LoadTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  std::string path_ = (std::filesystem::temp_directory_path() /
                       (::testing::UnitTest::GetInstance()->current_test_info()->name() + std::string(".tide")))
                          .string();
};

TEST_F(LoadTest, ReadsWhatTheWriterWrote) {
  ProcessInfo process;
  process.pid = 7;
  auto sink = open_file_sink(path_, true);
  ASSERT_TRUE(sink.ok());
  auto writer = TraceWriter::create(std::move(*sink), process);
  ASSERT_TRUE(writer.ok());
  Event event;
  event.time_ns = 5;
  event.address = 0x1000;
  event.size = 300;
  ASSERT_TRUE((*writer)->event(event).ok());
  event.kind = EventKind::free;
  event.time_ns = 9;
  ASSERT_TRUE((*writer)->event(event).ok());
  ASSERT_TRUE((*writer)->finish({20, true}).ok());
  writer->reset();

  std::uint64_t reported = 0;
  const auto store = load_store(path_, [&](std::uint64_t done, std::uint64_t) { reported = done; });
  ASSERT_TRUE(store.ok());
  EXPECT_EQ(store->definitions.process.pid, 7);
  EXPECT_EQ(store->devices[0].peak_allocated_bytes, 300U);
  EXPECT_EQ(store->devices[0].live_count, 0U);
  EXPECT_EQ(store->end_ns, 20U);
  EXPECT_GT(reported, 0U);

  const auto overview = load_overview(path_);
  ASSERT_TRUE(overview.ok());
  EXPECT_EQ(overview->devices[0].peak_allocated_at_ns, 5U);
}

TEST_F(LoadTest, NamesAFileThatIsNoRecording) {
  std::ofstream(path_) << "something else entirely";
  const auto store = load_store(path_);
  ASSERT_FALSE(store.ok());
  EXPECT_THAT(store.error().message, HasSubstr(path_));
}

}  // namespace
}  // namespace tidemark
