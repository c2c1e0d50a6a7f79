#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "unit/export/export_support.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::exported;
using testing::kCpu;
using testing::kGpu;
using testing::Scenario;
using testing::small_run;

// "main;step" = bytes, from the file.
std::vector<std::string> weighted_stacks(const json& document, const json& profile) {
  std::vector<std::string> stacks;
  for (std::size_t sample = 0; sample < profile["samples"].size(); ++sample) {
    std::string text;
    for (const std::size_t frame : profile["samples"][sample]) {
      text += (text.empty() ? "" : ";") + document["shared"]["frames"][frame]["name"].get<std::string>();
    }
    stacks.push_back(text + "=" + profile["weights"][sample].dump());
  }
  return stacks;
}

TEST(SpeedscopeExport, HoldsWhatWasAllocatedAtThePeakOfEachDevice) {
  const json document = json::parse(exported(small_run().store("/tmp/run.tide"), "speedscope"));
  EXPECT_EQ(document["$schema"], "https://www.speedscope.app/file-format-schema.json");
  EXPECT_EQ(document["name"], "run.tide");
  ASSERT_EQ(document["profiles"].size(), 2U);
  EXPECT_EQ(document["activeProfileIndex"], 0);
  const json& gpu = document["profiles"][0];
  EXPECT_EQ(gpu["type"], "sampled");
  EXPECT_EQ(gpu["unit"], "bytes");
  EXPECT_EQ(gpu["name"], "cuda:0 allocated at 30 ns");
  EXPECT_EQ(gpu["endValue"], 824);
  EXPECT_THAT(weighted_stacks(document, gpu),
              ::testing::UnorderedElementsAre("main;step=500", "main;forward=300", "(not recorded)=24"));
  const json& cpu = document["profiles"][1];
  EXPECT_EQ(cpu["name"], "cpu allocated at 20 ns");
  EXPECT_THAT(weighted_stacks(document, cpu), ::testing::ElementsAre("(no stack)=64"));
}

TEST(SpeedscopeExport, LooksAtTheMomentAskedFor) {
  const json document = json::parse(exported(small_run().store(), "speedscope", {"cuda:0", *parse_moment("end")}));
  ASSERT_EQ(document["profiles"].size(), 1U);
  EXPECT_THAT(weighted_stacks(document, document["profiles"][0]),
              ::testing::UnorderedElementsAre("main;step=500", "(not recorded)=24"));
}

TEST(SpeedscopeExport, FramesHaveFilesAndLines) {
  const json document = json::parse(exported(small_run().store(), "speedscope", {"cuda:0", {}}));
  const json expected = {{"name", "step"}, {"file", "/w/train.py"}, {"line", 5}};
  EXPECT_THAT(document["shared"]["frames"], ::testing::Contains(expected));
}

// Two nodes of the tree of stacks with equal frames, and two equal locations: one stack to the reader, one frame.
TEST(SpeedscopeExport, ListsEqualFramesOnce) {
  Scenario scenario;
  scenario.allocate(1, "a", 8, kCpu, scenario.stack({scenario.python("f", "f.py", 1)}));
  scenario.allocate(2, "b", 8, kCpu, scenario.stack({scenario.python("f", "f.py", 1)}));
  scenario.allocate(3, "c", 8, kCpu, scenario.stack({scenario.python("f", "f.py", 2)}));
  const json document = json::parse(exported(scenario.store(), "speedscope"));
  EXPECT_EQ(document["shared"]["frames"].size(), 2U);
}

TEST(SpeedscopeExport, StartsWithTheDeviceThatHeldMost) {
  Scenario scenario;
  scenario.allocate(1, "a", 9, kCpu);
  scenario.allocate(2, "b", 8, kGpu);
  EXPECT_EQ(json::parse(exported(scenario.store(), "speedscope"))["activeProfileIndex"], 1) << "the CPU, listed last";
}

TEST(SpeedscopeExport, RefusesARecordingOfNothing) {
  const Store store = Scenario().store("run.tide");
  Symbols symbols(store.definitions);
  for (const ExportFormat& format : export_formats()) {
    if (std::string_view(format.name) != "speedscope") continue;
    const auto written = format.write(store, symbols, {}, [](std::string_view) { return Result<void>(); }, {});
    ASSERT_FALSE(written.ok());
    EXPECT_THAT(written.error().message, ::testing::HasSubstr("run.tide: nothing was recorded"));
  }
}

TEST(SpeedscopeExport, IsValidJsonWhateverTheNames) {
  Scenario scenario;
  scenario.allocate(1, "a", 8, kCpu, scenario.stack({scenario.python("f\xFF\n\"", "\xC3", 1)}));
  const json document = json::parse(exported(scenario.store(), "speedscope"));
  EXPECT_EQ(document["shared"]["frames"][0]["name"], "f\xEF\xBF\xBD\n\"");
}

}  // namespace
}  // namespace tidemark
