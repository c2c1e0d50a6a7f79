#include "analyze/report.h"

#include <gtest/gtest.h>

#include <string>

#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using testing::kCpu;
using testing::kGpu;
using testing::Scenario;

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

Report report_of(const Store& store, const ReportOptions& options = {}) {
  Symbols symbols(store.definitions);
  auto report = analyze_report(store, symbols, options);
  EXPECT_TRUE(report.ok());
  return std::move(*report);
}

TEST(Report, HoldsTheResultsOfOneStore) {
  Scenario scenario = eight_stacks();
  scenario.allocate(9, "gpu", 77, kGpu);
  const Report report = report_of(scenario.store());
  ASSERT_EQ(report.summary.devices.size(), 2U);
  EXPECT_EQ(report.summary.devices[0].totals.peak_allocated_bytes, 3600U);
  EXPECT_EQ(report.timeline.series.at(1).peak_allocated_bytes, 77U);
  EXPECT_EQ(report.table.sections.at(0).rows.size(), 8U);
  EXPECT_EQ(report.tree.sections.at(0).nodes.size(), 9U);
  EXPECT_EQ(report.maps.size(), 2U);
  EXPECT_EQ(report.recording.event_count, 9U);
}

TEST(Report, FailsForADeviceThatIsNotThere) {
  const Store store = eight_stacks().store();
  Symbols symbols(store.definitions);
  EXPECT_FALSE(analyze_report(store, symbols, {"cuda:7"}).ok());
}

TEST(Report, CountsWhatHalvingLeavesOut) {
  Report report = report_of(eight_stacks().store());
  ASSERT_TRUE(halve(report));
  // The four largest stay: 800 + 700 + 600 + 500 = 2600 of 3600.
  const TableSection& table = report.table.sections[0];
  ASSERT_EQ(table.rows.size(), 4U);
  EXPECT_EQ(table.rows.back().bytes, 500U);
  EXPECT_EQ(table.other_rows, 4U);
  EXPECT_EQ(table.other_bytes, 1000U);
  EXPECT_EQ(table.other_blocks, 4U);
  const TreeSection& tree = report.tree.sections[0];
  ASSERT_EQ(tree.nodes.size(), 5U);  // of nine: the caller and the four largest
  EXPECT_EQ(tree.nodes[0].bytes, 3600U);
  EXPECT_EQ(tree.nodes[0].hidden.count, 4U);
  EXPECT_EQ(tree.nodes[0].hidden.bytes, 1000U);
  while (halve(report)) {
  }
  EXPECT_TRUE(report.table.sections[0].rows.empty());
  EXPECT_EQ(report.table.sections[0].other_bytes, 3600U);
  EXPECT_EQ(report.tree.sections[0].hidden.bytes, 3600U);
}

}  // namespace
}  // namespace tidemark
