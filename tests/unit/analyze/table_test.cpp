#include "analyze/usage/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using testing::kCpu;
using testing::kGpu;
using testing::Scenario;

// a 300, b 300 and c 100 alive at the peak; after that a and c go.
class TableTest : public ::testing::Test {
 protected:
  TableTest() {
    const StackId one = scenario_.stack({scenario_.python("one", "a.py", 1)});
    const StackId two = scenario_.stack({scenario_.python("two", "a.py", 2)});
    const ThreadId main = scenario_.thread(10, "main");
    const ThreadId worker = scenario_.thread(11, "worker");
    scenario_.allocate(1, "a", 300, kCpu, one, main);
    scenario_.allocate(2, "b", 300, kCpu, two, main);
    scenario_.allocate(3, "c", 100, kCpu, two, worker);
    scenario_.free(4, "a");
    scenario_.free(5, "c");
  }
  Table table(const TableOptions& options) {
    const Store store = scenario_.store();
    Symbols symbols(store.definitions);
    return *analyze_table(store, symbols, options);
  }

  Scenario scenario_;
};

TEST_F(TableTest, GroupsByStackAtThePeak) {
  const Table table = this->table({});
  ASSERT_EQ(table.sections.size(), 1U);
  const TableSection& cpu = table.sections[0];
  EXPECT_EQ(cpu.allocated_bytes, 700U);
  EXPECT_EQ(cpu.device->at_ns, 3U);
  ASSERT_EQ(cpu.rows.size(), 2U);
  EXPECT_EQ(cpu.rows[0].bytes, 400U);
  EXPECT_EQ(cpu.rows[0].blocks, 2U);
  EXPECT_DOUBLE_EQ(cpu.rows[0].share, 4.0 / 7);
  EXPECT_EQ(std::get<NamedStack>(cpu.rows[0].key).frames[0].function, "two");
  EXPECT_EQ(cpu.rows[1].bytes, 300U);
}

// Three layers of a model call one line; a fourth block comes from another line of it.
TEST(Table, PutsIdenticalLayersIntoOneRow) {
  Scenario scenario;
  const LocationId lines[] = {scenario.python("forward", "model.py", 7), scenario.python("forward", "model.py", 8)};
  const LocationId first_call = scenario.python("layers.0", "module.py", 9);
  const auto stack = [&](std::uint32_t module, std::size_t line) {
    Location call = scenario.definitions.locations[first_call.value];
    call.function = scenario.name_id("layers." + std::to_string(module));
    call.nn_module = {module};
    scenario.definitions.locations.push_back(call);
    const auto last = static_cast<std::uint32_t>(scenario.definitions.locations.size() - 1);
    return scenario.stack({lines[line], LocationId{last}});
  };
  for (std::uint32_t layer = 0; layer < 3; ++layer) {
    scenario.allocate(layer + 1, "layer" + std::to_string(layer), 100 + layer, kGpu, stack(layer, 0));
  }
  scenario.allocate(4, "other", 200, kGpu, stack(1, 1));
  const Store store = scenario.store();
  Symbols symbols(store.definitions);
  const Table table = *analyze_table(store, symbols, {});
  const std::vector<TableRow>& rows = table.sections.at(0).rows;
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].bytes, 100U + 101U + 102U);
  EXPECT_EQ(rows[0].blocks, 3U);
  EXPECT_EQ(rows[0].stacks, 3U);
  EXPECT_EQ(rows[1].bytes, 200U);
  EXPECT_EQ(rows[1].stacks, 1U);
}

TEST_F(TableTest, GroupsBySize) {
  const Table table = this->table({GroupBy::size, {}, std::nullopt, 0});
  ASSERT_EQ(table.sections[0].rows.size(), 2U);
  EXPECT_EQ(std::get<BlockSize>(table.sections[0].rows[0].key).bytes, 300U);
  EXPECT_EQ(table.sections[0].rows[0].blocks, 2U);
  EXPECT_EQ(table.sections[0].rows[0].bytes, 600U);
}

TEST_F(TableTest, GroupsByThread) {
  const Table table = this->table({GroupBy::thread, {}, std::nullopt, 0});
  ASSERT_EQ(table.sections[0].rows.size(), 2U);
  EXPECT_EQ(std::get<ThreadInfo>(table.sections[0].rows[0].key).name, "main");
  EXPECT_EQ(table.sections[0].rows[0].bytes, 600U);
  EXPECT_EQ(std::get<ThreadInfo>(table.sections[0].rows[1].key).tid, 11);
  EXPECT_EQ(table.sections[0].rows[1].bytes, 100U);
}

TEST_F(TableTest, GroupsByDevice) {
  scenario_.totals(kGpu, 24, 4096);
  scenario_.allocate(6, "g", 1000, kGpu);
  const Table table = this->table({GroupBy::device, {}, std::nullopt, 0});
  ASSERT_EQ(table.sections.size(), 1U);
  EXPECT_EQ(table.sections[0].allocated_bytes, 1724U);
  EXPECT_EQ(std::get<DeviceAt>(table.sections[0].rows[0].key).device, kGpu);
  EXPECT_EQ(table.sections[0].rows[0].bytes, 1024U);
  EXPECT_EQ(std::get<DeviceAt>(table.sections[0].rows[1].key).at_ns, 3U);
  EXPECT_EQ(table.sections[0].rows[1].bytes, 700U);
}

TEST_F(TableTest, LooksAtTheEnd) {
  const Table table = this->table({GroupBy::stack, *parse_moment("end"), std::nullopt, 0});
  EXPECT_EQ(table.sections[0].allocated_bytes, 300U);
  ASSERT_EQ(table.sections[0].rows.size(), 1U);
  EXPECT_EQ(table.sections[0].rows[0].blocks, 1U);
}

TEST_F(TableTest, AddsUpWhatItDoesNotList) {
  const Table table = this->table({GroupBy::stack, {}, std::nullopt, 1});
  EXPECT_EQ(table.sections[0].rows.size(), 1U);
  EXPECT_EQ(table.sections[0].other_rows, 1U);
  EXPECT_EQ(table.sections[0].other_bytes, 300U);
  EXPECT_EQ(table.sections[0].other_blocks, 1U);
}

TEST_F(TableTest, KeepsUnrecordedBytesApart) {
  scenario_.totals(kGpu, 24, 4096);
  scenario_.allocate(6, "g", 1000, kGpu);
  const Table table = this->table({GroupBy::stack, {}, "cuda:0", 0});
  ASSERT_EQ(table.sections.size(), 1U);
  EXPECT_EQ(table.sections[0].allocated_bytes, 1024U);
  EXPECT_EQ(table.sections[0].unrecorded_bytes, 24U);
  EXPECT_EQ(table.sections[0].rows[0].bytes, 1000U);
}

// Two ways to the same numbers: replaying blocks, and the streaming pass of the overview.
TEST_F(TableTest, AgreesWithTheOverviewsStacksAtThePeak) {
  const Store store = scenario_.store();
  std::map<std::uint32_t, std::uint64_t> streamed;
  for (const StackUsage& usage : store.stacks_at_peak) streamed[usage.stack.value] = usage.bytes;
  std::map<std::uint32_t, std::uint64_t> replayed;
  for (const BlockId block : live_blocks(store, 0, store.devices[0].peak_change_count)) {
    replayed[store.blocks.stack[block.value].value] += store.blocks.size[block.value];
  }
  EXPECT_EQ(streamed, replayed);
}

// PyTorch numbers private pools: the stack with most of a pool's bytes says whose it is.
TEST(Table, APoolHasTheStackWithMostOfItsBytes) {
  testing::Scenario scenario;
  const StackId capture = scenario.stack({scenario.python("capture", "train.py", 9)});
  const StackId warm_up = scenario.stack({scenario.python("warm_up", "train.py", 7)});
  scenario.allocate(10, "a", 200, testing::kGpu, capture);
  scenario.allocate(20, "b", 150, testing::kGpu, warm_up);
  scenario.allocate(30, "c", 150, testing::kGpu, warm_up);
  scenario.allocate(40, "d", 1000, testing::kGpu, capture);
  Store store = scenario.store();
  store.pools = {{0, 0}, {0, 1}};
  store.streams = {0};
  store.blocks.stream.assign(4, 0);
  store.blocks.pool = {1, 1, 1, 0};
  Symbols symbols(store.definitions);
  TableOptions options;
  options.by = GroupBy::pool;
  const auto table = analyze_table(store, symbols, options);
  ASSERT_TRUE(table);
  const TableRow& pool = table->sections.at(0).rows.at(1);
  EXPECT_EQ(std::get<PoolId>(pool.key), (PoolId{0, 1}));
  ASSERT_TRUE(pool.most_by);
  EXPECT_EQ(pool.most_by->frames.at(pool.most_by->call_site).function, "warm_up");
}

}  // namespace
}  // namespace tidemark
