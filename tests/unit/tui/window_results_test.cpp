#include <gtest/gtest.h>

#include "tui/recorded_results.h"
#include "unit/store/store_scenario.h"

namespace tidemark::tui {
namespace {

using testing::kGpu;

DeviceHolders holders_of(const testing::Scenario& scenario) {
  ProcessResults process;
  fill_results(process, attribute(scenario.store()), 0);
  EXPECT_EQ(process.devices.size(), 1U);
  return process.devices.at(0);
}

TEST(WindowResults, PeakIsOfItsMoment) {
  testing::Scenario scenario;
  scenario.totals(kGpu, 0, 4096);
  scenario.allocate(10, "a", 512, kGpu);
  scenario.allocate(20, "b", 1024, kGpu);
  scenario.free(30, "a");
  EXPECT_EQ(holders_of(scenario).allocated_bytes, 1024U);
  EXPECT_EQ(holders_of(scenario).peak_bytes, 1536U);
}

// By its own total the allocator never held more than 512 bytes: the free of the first block was lost.
TEST(WindowResults, PeakIsNeverBelowWhatIsListed) {
  testing::Scenario scenario;
  scenario.totals(kGpu, 0, 4096);
  scenario.allocate(10, "a", 512, kGpu);
  scenario.allocate(20, "b", 512, kGpu);
  scenario.events.back().total_allocated = 512;
  EXPECT_EQ(holders_of(scenario).allocated_bytes, 1024U);
  EXPECT_EQ(holders_of(scenario).peak_bytes, 1024U);
}

}  // namespace
}  // namespace tidemark::tui
