#include "analyze/common/annotations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using Kind = Mark::Kind;

class Annotations : public ::testing::Test {
 protected:
  StringId name(const std::string& text) { return scenario_.name_id(text); }
  void mark(Kind kind, std::uint64_t time_ns, const std::string& text) { scenario_.mark(kind, time_ns, text); }
  /// Blocks b0, b1, ... born at these times.
  void blocks(const std::vector<std::uint64_t>& births) {
    for (const std::uint64_t time_ns : births) scenario_.allocate(time_ns, "b" + std::to_string(count_++), 512);
  }
  std::vector<std::string> names() {
    const Store store = scenario_.store();
    std::vector<std::string> found;
    for (const StringId id : annotations_of_blocks(store)) {
      found.push_back(id.valid() ? store.definitions.strings[id.value] : "-");
    }
    return found;
  }

  testing::Scenario scenario_;
  int count_ = 0;
};

TEST_F(Annotations, TheInnermostRangeCounts) {
  mark(Kind::range_begin, 10, "step");
  mark(Kind::range_begin, 20, "forward");
  mark(Kind::point, 25, "moment");
  mark(Kind::range_end, 30, "forward");
  mark(Kind::range_end, 40, "step");
  blocks({5, 10, 20, 27, 30, 39, 40});
  EXPECT_THAT(names(), ElementsAre("-", "step", "forward", "forward", "step", "step", "-"));
}

TEST_F(Annotations, RangesThatOverlapEndByName) {
  mark(Kind::range_begin, 10, "a");
  mark(Kind::range_begin, 20, "b");
  mark(Kind::range_end, 30, "a");  // encloses b, which continues
  mark(Kind::range_end, 40, "b");
  mark(Kind::range_end, 45, "never begun");
  blocks({15, 25, 35, 41});
  EXPECT_THAT(names(), ElementsAre("a", "b", "b", "-"));
}

TEST_F(Annotations, OneNameNestsInItself) {
  for (const std::uint64_t time_ns : {10U, 20U}) mark(Kind::range_begin, time_ns, "module");
  mark(Kind::range_end, 30, "module");
  blocks({25, 35});
  EXPECT_THAT(names(), ElementsAre("module", "module"));
  const auto ranges = annotated_ranges(scenario_.store().definitions);
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_EQ(ranges[0].end_ns, std::nullopt) << "the inner one has ended, the outer never does";
  EXPECT_EQ(ranges[1].end_ns, 30U);
}

TEST_F(Annotations, TextOnABlockCountsMore) {
  mark(Kind::range_begin, 0, "step");
  blocks({1, 2, 3});
  const StringId first = name("first");
  const StringId later = name("later");
  StoreBuilder builder;
  for (const Event& event : scenario_.events) builder.add(event);
  builder.add_metadata(SlotId{2}, first);
  builder.add_metadata(SlotId{1}, first);
  builder.add_metadata(SlotId{1}, later);
  builder.add_metadata(SlotId{0}, {});
  builder.add_metadata(SlotId{9}, later);  // there was no such block
  const Store store = std::move(builder).finish("x", scenario_.definitions);
  EXPECT_THAT(annotations_of_blocks(store), ElementsAre(name("step"), later, first));
}

TEST_F(Annotations, MarksAreBroughtIntoTheOrderOfTime) {
  mark(Kind::range_end, 30, "b");
  mark(Kind::range_begin, 20, "b");
  blocks({25});
  EXPECT_THAT(names(), ElementsAre("b"));
  EXPECT_EQ(scenario_.store().end_ns, 30U) << "the last thing known to have happened";
}

}  // namespace
}  // namespace tidemark
