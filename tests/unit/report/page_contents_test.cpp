#include "report/html/page_contents.h"

#include <gtest/gtest.h>

#include <string>

#include "unit/store/store_scenario.h"

namespace tidemark::html {
namespace {

using tidemark::testing::kCpu;
using tidemark::testing::kGpu;
using tidemark::testing::Scenario;

// Eight stacks below one caller; the n-th holds n * 100 bytes: 3600 in all.
Scenario eight_stacks() {
  Scenario scenario;
  const StackId caller = scenario.push({}, scenario.python("main", "train.py", 1));
  for (std::uint64_t n = 1; n <= 8; ++n) {
    const std::string name = "f" + std::to_string(n);
    scenario.allocate(n, name, n * 100, kCpu, scenario.push(caller, scenario.python(name, "model.py", 1)));
  }
  return scenario;
}

PageContents contents_of(const Store& store, const PageOptions& options = {}) {
  Symbols symbols(store.definitions);
  auto contents = collect_page_contents(store, symbols, options);
  EXPECT_TRUE(contents.ok());
  return std::move(*contents);
}

TEST(PageContents, HoldsTheResultsOfOneStore) {
  Scenario scenario = eight_stacks();
  scenario.allocate(9, "gpu", 77, kGpu);
  const PageContents contents = contents_of(scenario.store());
  ASSERT_EQ(contents.summary.devices.size(), 2U);
  EXPECT_EQ(contents.summary.devices[1].totals.peak_allocated_bytes, 3600U);
  EXPECT_EQ(contents.timeline.series.at(0).peak_allocated_bytes, 77U);
  EXPECT_EQ(contents.table.sections.at(1).rows.size(), 8U);
  EXPECT_EQ(contents.tree.sections.at(1).nodes.size(), 9U);
  EXPECT_EQ(contents.maps.size(), 2U);
  EXPECT_EQ(contents.recording.event_count, 9U);
}

TEST(PageContents, FailsForADeviceThatIsNotThere) {
  const Store store = eight_stacks().store();
  Symbols symbols(store.definitions);
  EXPECT_FALSE(collect_page_contents(store, symbols, {"cuda:7"}).ok());
}

TEST(PageContents, HoldsASummaryOnlyOfRanksThatWereNotAskedFor) {
  Scenario scenario = eight_stacks();
  scenario.definitions.process.rank = 3;
  PageOptions options;
  options.rank = 3;
  EXPECT_TRUE(contents_of(scenario.store(), options).is_detailed());
  options.rank = 2;
  const PageContents contents = contents_of(scenario.store(), options);
  EXPECT_FALSE(contents.is_detailed());
  EXPECT_EQ(contents.summary.devices.at(0).totals.peak_allocated_bytes, 3600U);
  EXPECT_EQ(contents.recording.process.rank, 3);
  EXPECT_TRUE(contents.table.sections.empty());
}

TEST(PageContents, CountsWhatHalvingLeavesOut) {
  PageContents contents = contents_of(eight_stacks().store());
  ASSERT_TRUE(halve(contents));
  // The four largest stay: 800 + 700 + 600 + 500 = 2600 of 3600.
  const TableSection& table = contents.table.sections[0];
  ASSERT_EQ(table.rows.size(), 4U);
  EXPECT_EQ(table.rows.back().bytes, 500U);
  EXPECT_EQ(table.other_rows, 4U);
  EXPECT_EQ(table.other_bytes, 1000U);
  EXPECT_EQ(table.other_blocks, 4U);
  const TreeSection& tree = contents.tree.sections[0];
  ASSERT_EQ(tree.nodes.size(), 5U);  // of nine: the caller and the four largest
  EXPECT_EQ(tree.nodes[0].bytes, 3600U);
  EXPECT_EQ(tree.nodes[0].hidden.count, 4U);
  EXPECT_EQ(tree.nodes[0].hidden.bytes, 1000U);
  const TimelineLayers& split = contents.timeline.series[0].splits.at(0);
  ASSERT_EQ(split.layers.size(), 4U);
  EXPECT_EQ(split.other.back(), 1000U);
  EXPECT_EQ(contents.project_tree.sections[0].nodes.size(), 5U);
  while (halve(contents)) {
  }
  EXPECT_TRUE(contents.table.sections[0].rows.empty());
  EXPECT_EQ(contents.table.sections[0].other_bytes, 3600U);
  EXPECT_EQ(contents.tree.sections[0].hidden.bytes, 3600U);
}

}  // namespace
}  // namespace tidemark::html
