#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "analyze/timeline/timeline.h"
#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::kCpu;
using testing::kGpu;
using testing::Scenario;

Timeline layers_of(const Scenario& scenario, std::size_t points, std::size_t top) {
  const Store store = scenario.store();
  Symbols symbols(store.definitions);
  Timeline timeline = *analyze_timeline(store, symbols, {std::nullopt, points});
  add_call_sites(timeline, store, symbols, top);
  return timeline;
}

TEST(CallSiteLayers, ContainBytesAtEachPoint) {
  Scenario scenario;
  const LocationId main = scenario.python("main", "t.py", 1);
  const StackId load = scenario.stack({main, scenario.python("load", "t.py", 2)});
  const LocationId forward = scenario.python("forward", "t.py", 3);
  const StackId first = scenario.stack({main, forward});
  const StackId second = scenario.stack({main, forward, scenario.native("libtorch.so", 8)});  // the same call site
  scenario.totals(kGpu, 5000, 8000);
  scenario.allocate(1000, "a", 100, kGpu, load);  // the allocator has 4900 B that were not recorded
  scenario.allocate(2000, "b", 600, kGpu, first);
  scenario.allocate(2500, "cpu", 77, kCpu, first);
  scenario.allocate(3000, "c", 50, kGpu, second);
  scenario.allocate(4000, "d", 20, kGpu);
  scenario.free(5000, "b");
  scenario.definitions.end = EndInfo{6000, true};
  const Timeline timeline = layers_of(scenario, 2000, 2);
  const TimelineLayers& layers = timeline.series.at(0).splits.at(0);
  ASSERT_EQ(layers.layers.size(), 2U);
  EXPECT_EQ(layers.layers[0].stack.frames[layers.layers[0].stack.call_site].function, "forward");
  EXPECT_THAT(layers.layers[0].bytes, ElementsAre(0, 600, 650, 650, 50, 50));
  EXPECT_THAT(layers.layers[1].bytes, ElementsAre(100, 100, 100, 100, 100, 100));
  EXPECT_THAT(layers.other, ElementsAre(0, 0, 0, 20, 20, 20));
  EXPECT_THAT(layers.unrecorded, Each(timeline.series[0].points[0].allocated_bytes - 100));
  EXPECT_THAT(timeline.series.at(1).splits.at(0).layers.at(0).bytes, Each(77U));
}

TEST(CallSiteLayers, AddUpToWhatWasAllocatedAtEveryPointThatIsLeft) {
  std::mt19937 random(7);
  Scenario scenario;
  std::vector<StackId> stacks;
  for (std::uint32_t line = 1; line <= 20; ++line) {
    stacks.push_back(scenario.stack({scenario.python("f", "t.py", line)}));
  }
  std::vector<std::string> live;
  for (std::uint64_t time = 1; time <= 5000; ++time) {
    if (!live.empty() && random() % 2 == 0) {
      const std::size_t index = random() % live.size();
      scenario.free(time / 3, live[index]);  // several at one time
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(index));
    } else {
      live.push_back(std::to_string(time));
      scenario.allocate(time / 3, live.back(), 1 + random() % 1000, kCpu, stacks[random() % stacks.size()]);
    }
  }
  const Timeline timeline = layers_of(scenario, 100, 4);
  const TimelineSeries& series = timeline.series.at(0);
  ASSERT_LE(series.points.size(), 101U);
  ASSERT_EQ(series.splits.at(0).layers.size(), 4U);
  for (std::size_t index = 0; index < series.points.size(); ++index) {
    std::uint64_t sum = series.splits.at(0).other[index];
    for (const TimelineLayers::Layer& layer : series.splits.at(0).layers) sum += layer.bytes.at(index);
    EXPECT_EQ(sum, series.points[index].allocated_bytes) << index;
    EXPECT_EQ(series.splits.at(0).unrecorded[index], 0U);
  }
}

}  // namespace
}  // namespace tidemark
