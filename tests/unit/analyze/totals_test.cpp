#include "analyze/common/totals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using testing::kCpu;
using testing::kGpu;
using testing::Scenario;

std::string text(const std::optional<std::uint64_t>& value) {
  return value ? std::to_string(*value) : "?";
}

// "time device: allocated active reserved".
std::vector<std::string> walked(const Store& store) {
  std::vector<std::string> lines;
  walk_totals(store, [&](const DeviceTotals& totals) {
    lines.push_back(std::to_string(totals.time_ns) + " " + to_string(store.devices[totals.device].device) + ": " +
                    std::to_string(totals.allocated_bytes) + " " + text(totals.active_bytes) + " " +
                    text(totals.reserved_bytes));
  });
  return lines;
}

TEST(WalkTotals, KeepsDevicesApart) {
  Scenario scenario;
  scenario.totals(kGpu, 24, 4096);
  scenario.allocate(1, "a", 300, kGpu);
  scenario.allocate(2, "b", 64, kCpu);
  scenario.totals(kGpu, 324, 8192);
  scenario.allocate(3, "c", 500, kGpu);
  scenario.free(4, "a");
  scenario.free(5, "b");
  EXPECT_THAT(walked(scenario.store()),
              ::testing::ElementsAre("1 cuda:0: 324 ? 4096", "2 cpu: 64 ? ?", "3 cuda:0: 824 ? 8192",
                                     "4 cuda:0: 524 ? 8192", "5 cpu: 0 ? ?"));
}

TEST(WalkTotals, SeesChangesWithoutABlock) {
  Scenario scenario;
  scenario.totals(kGpu, 1000, 4096);
  scenario.allocate(1, "a", 300, kGpu);
  scenario.free_unknown(2, kGpu, 400);
  scenario.free(3, "a");
  EXPECT_THAT(walked(scenario.store()),
              ::testing::ElementsAre("1 cuda:0: 1300 ? 4096", "2 cuda:0: 900 ? 4096", "3 cuda:0: 600 ? 4096"));
}

}  // namespace
}  // namespace tidemark
