// Breakdowns, groups and filters of hand-made attributions.
#include "analyze/usage/breakdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyze/attribution/filter.h"
#include "analyze/timeline/timeline.h"
#include "analyze/usage/table.h"
#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kGpu;
using testing::Scenario;

// At the peak (40 ns): weight 300, state 200 and activations 100 + 50, 24 more that were not recorded; then the
// activations go, the inner one first.
class BreakdownTest : public ::testing::Test {
 protected:
  BreakdownTest() {
    scenario_.totals(kGpu, 24, 4096);
    scenario_.allocate(10, "weight", 300, kGpu);
    scenario_.allocate(20, "state", 200, kGpu);
    scenario_.allocate(30, "inner", 50, kGpu);
    scenario_.allocate(40, "outer", 100, kGpu);
    scenario_.free(50, "inner");
    scenario_.free(60, "outer");
    scenario_.mark(Mark::Kind::point, 0, "Tidemark.step#0");
    scenario_.mark(Mark::Kind::point, 25, "Tidemark.step#1");
    attribution_.modules = {{"model.layers.0.mlp.up", "Linear", Component::mlp},
                            {"model.layers.0.attention", "Attention", Component::attention},
                            {"model.norm", "Norm", Component::normalization}};
    attribution_.blocks = {
        {ModulePathId{0}, {}, Phase::other, Component::mlp, Category::parameter, Confidence::exact, Confidence::exact},
        {{}, {}, Phase::optimizer, Component::mlp, Category::optimizer_state, Confidence::exact, Confidence::unknown},
        {ModulePathId{0},
         {},
         Phase::forward,
         Component::mlp,
         Category::activation,
         Confidence::estimated,
         Confidence::exact},
        {ModulePathId{1},
         {},
         Phase::forward,
         Component::attention,
         Category::activation,
         Confidence::exact,
         Confidence::exact}};
  }
  [[nodiscard]] Result<Breakdown> breakdown(const BreakdownOptions& options = {}) const {
    const Store store = scenario_.store();
    const Symbols symbols(store.definitions);
    return analyze_breakdown(store, symbols, attribution_, options);
  }
  // The bytes of the blocks that are chosen, or the error.
  [[nodiscard]] std::vector<std::uint64_t> chosen(const FilterOptions& options) const {
    const Store store = scenario_.store();
    const auto filter = choose_blocks(store, attribution_, options);
    std::vector<std::uint64_t> sizes;
    if (!filter) return sizes;
    for (std::size_t block = 0; block < store.blocks.count(); ++block) {
      if ((*filter)(block)) sizes.push_back(store.blocks.size[block]);
    }
    return sizes;
  }

  Scenario scenario_;
  Attribution attribution_;
};

TEST_F(BreakdownTest, ModelPeakIsTheMaximumAtOneTime) {
  EXPECT_THAT(model_peaks(scenario_.store(), attribution_), ElementsAre(500));  // the weight and the state
  scenario_.allocate(70, "gradient", 80, kGpu);
  scenario_.free(80, "gradient");
  scenario_.allocate(90, "next gradient", 70, kGpu);
  for (int n = 0; n < 2; ++n) {
    attribution_.blocks.push_back(
        {{}, {}, Phase::backward, Component::mlp, Category::gradient, Confidence::exact, Confidence::unknown});
  }
  EXPECT_THAT(model_peaks(scenario_.store(), attribution_), ElementsAre(580));
}

TEST_F(BreakdownTest, CategoriesAddUpToAllocated) {
  const BreakdownDevice device = breakdown()->devices.at(0);
  EXPECT_EQ(device.allocated_bytes, 674U);
  EXPECT_EQ(device.unrecorded_bytes, 24U);
  ASSERT_EQ(device.categories.size(), 3U);
  EXPECT_EQ(device.categories[0].category, Category::parameter);
  EXPECT_EQ(device.categories[0].bytes, 300U);
  EXPECT_DOUBLE_EQ(device.categories[0].share, 300.0 / 674);
  EXPECT_EQ(device.categories[0].confidence(), Confidence::exact);
  EXPECT_EQ(device.categories[2].category, Category::activation);
  EXPECT_EQ(device.categories[2].bytes, 150U);
  EXPECT_EQ(device.categories[2].exact_bytes, 100U);
  EXPECT_EQ(device.categories[2].confidence(), Confidence::estimated) << "where a part of it is";
}

TEST_F(BreakdownTest, EveryGroupAddsUpToWhatIsRecorded) {
  const BreakdownDevice device = breakdown({OwnerKind::layer, {}, {}, 1, {}})->devices.at(0);
  ASSERT_EQ(device.groups.size(), 4U);
  EXPECT_EQ(device.groups[0].kind, OwnerKind::layer);
  EXPECT_EQ(device.groups[0].rows.at(0).owner, (BlockOwner{OwnerKind::layer, "model.layers.0"}));
  EXPECT_EQ(device.groups[0].rows[0].bytes, 450U);
  EXPECT_EQ(device.groups[0].rows[0].bytes_of(Category::activation), 150U);
  ASSERT_EQ(device.groups[0].rows[0].cells.size(), 3U) << "activations are known in two ways";
  EXPECT_EQ(device.groups[0].other_rows, 1U) << "of no module";
  EXPECT_EQ(device.groups[0].other_bytes, 200U);
  for (const BreakdownGroup& group : device.groups) {
    EXPECT_EQ(group.rows.at(0).bytes + group.other_bytes, 650U);
  }
}

TEST_F(BreakdownTest, StepsAreInTheirOrder) {
  const BreakdownDevice device = breakdown({OwnerKind::step, {}, {}, 0, {}})->devices.at(0);
  const std::vector<BreakdownRow>& rows = device.groups.at(0).rows;
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].owner.name, "0");
  EXPECT_EQ(rows[0].bytes, 500U);
  EXPECT_EQ(rows[1].owner.name, "1");
}

TEST_F(BreakdownTest, FailsWithoutAttribution) {
  for (Owner& owner : attribution_.blocks) owner = Owner{};
  EXPECT_THAT(breakdown().error().message, HasSubstr("no category is known"));
  EXPECT_THAT(breakdown({OwnerKind::module, {}, {}, 0, {}}).error().message, HasSubstr("no module is known"));
}

TEST_F(BreakdownTest, AFilterLeavesOutOtherBlocksAndWhatIsNotRecorded) {
  const Store store = scenario_.store();
  const BlockFilter filter = *choose_blocks(store, attribution_, {"", "", "activation", ""});
  const BreakdownDevice device = breakdown({OwnerKind::component, {}, {}, 0, filter})->devices.at(0);
  EXPECT_EQ(device.at_ns, 40U) << "the device's peak";
  EXPECT_EQ(device.allocated_bytes, 150U);
  EXPECT_EQ(device.unrecorded_bytes, 0U);
}

TEST_F(BreakdownTest, FiltersRequireAllProperties) {
  EXPECT_THAT(chosen({}), ElementsAre(300, 200, 50, 100));
  EXPECT_THAT(chosen({"layers.0", "", "", ""}), ElementsAre(300, 50, 100));
  EXPECT_THAT(chosen({"layers.*.mlp", "", "activation", ""}), ElementsAre(50));
  EXPECT_THAT(chosen({"", "mlp", "", "optimizer"}), ElementsAre(200));
  EXPECT_THAT(chosen({"layers.7", "", "", ""}), IsEmpty());
}

TEST(ModulePatterns, MatchPartsInARow) {
  EXPECT_TRUE(module_matches("model.layers.3.mlp", "layers.3.*"));
  EXPECT_TRUE(module_matches("model.layers.3.mlp.up", "model.layers.3")) << "what is in it";
  EXPECT_TRUE(module_matches("model.layers.3.mlp.up", "mlp"));
  EXPECT_FALSE(module_matches("model.layers.31.mlp", "layers.3"));
  EXPECT_FALSE(module_matches("model.layers.3", "layers.3.*"));
  EXPECT_TRUE(module_matches("Net", "N?t"));
}

TEST(Layers, EndWithTheFirstNumber) {
  EXPECT_EQ(layer_of("model.layers.3.experts.7.up"), "model.layers.3");
  EXPECT_EQ(layer_of("layer1.0.conv1"), "layer1.0");
  EXPECT_EQ(layer_of("lm_head"), "lm_head");
}

TEST_F(BreakdownTest, TablesGroupByOwner) {
  const Store store = scenario_.store();
  Symbols symbols(store.definitions);
  TableOptions options;
  options.by = GroupBy::module;
  options.attribution = &attribution_;
  const TableSection section = analyze_table(store, symbols, options)->sections.at(0);
  ASSERT_EQ(section.rows.size(), 3U);
  EXPECT_EQ(std::get<BlockOwner>(section.rows[0].key).name, "model.layers.0.mlp.up");
  EXPECT_EQ(section.rows[0].bytes, 350U);
  EXPECT_EQ(std::get<BlockOwner>(section.rows[1].key).name, std::nullopt);
  EXPECT_EQ(section.unrecorded_bytes, 24U);
}

TEST_F(BreakdownTest, LayersOverTimeAddUpAtEveryPoint) {
  const Store store = scenario_.store();
  const Symbols symbols(store.definitions);
  Timeline timeline = *analyze_timeline(store, symbols, {});
  add_owners(timeline, store, OwnerKind::category, *OwnerGroups::create(store, attribution_, OwnerKind::category));
  const TimelineSeries& series = timeline.series.at(0);
  const TimelineLayers& split = series.splits.at(0);
  ASSERT_EQ(split.layers.size(), 3U);
  EXPECT_EQ(split.layers[0].owner.name, "parameter") << "in the order of categories";
  EXPECT_EQ(split.layers[2].owner.name, "activation");
  for (std::size_t index = 0; index < series.points.size(); ++index) {
    std::uint64_t sum = split.other[index] + split.unrecorded[index];
    for (const TimelineLayers::Layer& layer : split.layers) sum += layer.bytes[index];
    EXPECT_EQ(sum, series.points[index].allocated_bytes) << index;
  }
}

TEST_F(BreakdownTest, ATimelineOfSomeBlocksHasItsOwnPeak) {
  const Store store = scenario_.store();
  const Symbols symbols(store.definitions);
  TimelineOptions options;
  options.filter = *choose_blocks(store, attribution_, {"mlp", "", "activation", ""});
  const TimelineSeries series = analyze_timeline(store, symbols, options)->series.at(0);
  EXPECT_EQ(series.peak_allocated_bytes, 50U);
  EXPECT_EQ(series.peak_allocated_at_ns, 30U);
  EXPECT_EQ(series.points.back().allocated_bytes, 0U);
  EXPECT_EQ(series.peak_reserved_bytes, std::nullopt);
}

}  // namespace
}  // namespace tidemark
