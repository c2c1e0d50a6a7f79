#include "analyze/common/moment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "analyze/common/recording_info.h"
#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kGpu;
using testing::Scenario;

TEST(ParseMoment, ReadsTimesAndShares) {
  EXPECT_EQ(parse_moment("peak")->kind, Moment::Kind::peak);
  EXPECT_EQ(parse_moment("end")->kind, Moment::Kind::end);
  EXPECT_EQ(parse_moment("12.5s")->time_ns, 12'500'000'000U);
  EXPECT_EQ(parse_moment("300ms")->time_ns, 300'000'000U);
  EXPECT_EQ(parse_moment("40us")->time_ns, 40'000U);
  EXPECT_EQ(parse_moment("7ns")->time_ns, 7U);
  EXPECT_EQ(parse_moment("2m")->time_ns, 120'000'000'000U);
  EXPECT_EQ(parse_moment("2h")->time_ns, 7'200'000'000'000U);
  EXPECT_EQ(parse_moment("1 s")->time_ns, 1'000'000'000U);
  EXPECT_DOUBLE_EQ(parse_moment("40%")->share, 0.4);
}

TEST(ParseMoment, RejectsInvalidText) {
  for (const char* text : {"", "12", "peaks", "-1s", "101%", "nan s", "nans", "infs", "1 x", "1e30s", "s", "%"}) {
    const auto moment = parse_moment(text);
    EXPECT_FALSE(moment.ok()) << text;
  }
  EXPECT_THAT(parse_moment("soon").error().message, HasSubstr("invalid time 'soon'"));
}

TEST(FindMoment, FindsMarksByName) {
  Scenario scenario;
  const auto mark = [&](Mark::Kind kind, std::uint64_t time_ns, const std::string& name) {
    scenario.definitions.strings.push_back(name);
    const StringId id{static_cast<std::uint32_t>(scenario.definitions.strings.size() - 1)};
    scenario.definitions.marks.push_back({kind, time_ns, id, {}});
  };
  mark(Mark::Kind::range_begin, 300, "step");  // separate strings, although equal
  mark(Mark::Kind::range_end, 400, "step");
  mark(Mark::Kind::range_begin, 100, "step");
  mark(Mark::Kind::point, 250, "peak");
  mark(Mark::Kind::point, 260, "mail@2");
  const Store store = scenario.store();
  EXPECT_EQ(find_moment(store, "step")->time_ns, 100U);
  EXPECT_EQ(find_moment(store, "step@2")->time_ns, 300U);
  EXPECT_EQ(find_moment(store, "peak")->kind, Moment::Kind::peak);
  EXPECT_EQ(find_moment(store, "mark:peak")->time_ns, 250U);
  EXPECT_EQ(find_moment(store, "mail@2")->time_ns, 260U) << "the name itself";
  EXPECT_EQ(find_moment(store, "40ns")->time_ns, 40U);
  for (const char* text : {"step@3", "step@0", "step@", "stop", "mail"}) {
    EXPECT_THAT(find_moment(store, text).error().message, HasSubstr("(available: 'step' (2 times), 'mail@2', 'peak')"))
        << text;
  }
  EXPECT_THAT(find_moment(Scenario().store(), "step").error().message, HasSubstr("contains no marks"));
}

TEST(FindMoment, FindsTrainingSteps) {
  Scenario scenario;
  for (const std::uint64_t time_ns : {100U, 200U, 300U, 400U}) {
    scenario.mark(Mark::Kind::point, time_ns, "train_step");
    scenario.allocate(time_ns + 1, "block" + std::to_string(time_ns), 512);
  }
  const Store store = scenario.store();
  EXPECT_EQ(find_moment(store, "step:0")->time_ns, 100U);
  EXPECT_EQ(find_moment(store, "step:3")->time_ns, 400U);
  EXPECT_EQ(find_moment(store, "step:4").error().message,
            "run.tide: no step 4 (available: step:0 to step:3, 4 training steps)");
  EXPECT_THAT(find_moment(store, "step:").error().message, HasSubstr("no mark 'step:'"));
  EXPECT_THAT(find_moment(Scenario().store(), "step:3").error().message,
              HasSubstr("run.tide: no step 3: no training steps detected"));
}

TEST(FindMoment, EveryMarkCanBeNamed) {
  for (const char* name : {"epoch 1", "step", "step@2", "stop"}) EXPECT_EQ(moment_of_mark(name), name);
  for (const char* name : {"peak", "end", "12.5s", "1st epoch", "-1", "step:3", "mark:x"}) {
    EXPECT_EQ(moment_of_mark(name), std::string("mark:") + name);
    Scenario scenario;
    scenario.mark(Mark::Kind::point, 70, name);
    EXPECT_TRUE(may_be_a_moment(moment_of_mark(name)));
    EXPECT_EQ(find_moment(scenario.store(), moment_of_mark(name))->time_ns, 70U) << name;
  }
}

std::vector<std::uint32_t> blocks_at(const Store& store, const Moment& moment) {
  std::vector<std::uint32_t> blocks;
  for (const BlockId block : live_blocks(store, 0, resolve_moment(store, moment, 0).change_count)) {
    blocks.push_back(block.value);
  }
  return blocks;
}

TEST(LiveBlocks, FollowBirthsAndDeaths) {
  Scenario scenario;
  scenario.allocate(100, "a", 100);
  scenario.allocate(200, "b", 50);
  scenario.allocate(250, "other device", 9999, kGpu);
  scenario.free(300, "a");
  scenario.allocate(400, "c", 60);
  scenario.definitions.end = EndInfo{1000, true};
  const Store store = scenario.store();
  EXPECT_THAT(blocks_at(store, {}), ElementsAre(0, 1));
  EXPECT_THAT(blocks_at(store, *parse_moment("end")), ElementsAre(1, 3));
  EXPECT_THAT(blocks_at(store, *parse_moment("150ns")), ElementsAre(0));
  EXPECT_THAT(blocks_at(store, *parse_moment("300ns")), ElementsAre(1));  // the event at that very time has happened
  EXPECT_THAT(blocks_at(store, *parse_moment("35%")), ElementsAre(1));
  EXPECT_THAT(blocks_at(store, *parse_moment("50ns")), ElementsAre());
  EXPECT_THAT(blocks_at(store, *parse_moment("1m")), ElementsAre(1, 3));
}

TEST(FindInstant, CountsUnrecordedBytes) {
  Scenario scenario;
  scenario.totals(kGpu, 1000, 0);
  scenario.allocate(100, "a", 500, kGpu);
  scenario.free_unknown(200, kGpu, 300);
  const Store store = scenario.store();
  EXPECT_EQ(resolve_moment(store, {}, 0).unrecorded_bytes, 1000U);
  EXPECT_EQ(resolve_moment(store, *parse_moment("150ns"), 0).unrecorded_bytes, 1000U);
  EXPECT_EQ(resolve_moment(store, *parse_moment("200ns"), 0).unrecorded_bytes, 700U);
  EXPECT_EQ(resolve_moment(store, *parse_moment("end"), 0).unrecorded_bytes, 700U);
}

TEST(SelectDevices, ShowsWhatTheDriverHandedOutOnlyWhenAsked) {
  Scenario scenario;
  scenario.allocate(1, "a", 1, {DeviceType::cuda_driver, 0});
  scenario.allocate(2, "b", 1, kGpu);
  scenario.allocate(3, "c", 1, {DeviceType::cuda_host, 0});
  const Overview overview = scenario.overview();
  EXPECT_THAT(*select_devices(overview, std::nullopt), ElementsAre(1));
  EXPECT_THAT(*select_devices(overview, "cuda-driver:0"), ElementsAre(0));
  EXPECT_THAT(*select_devices(overview, "cuda-host"), ElementsAre(2));
}

TEST(SelectDevices, ListsGpusThenTheCpuThenTheDriversMemory) {
  Scenario scenario;
  scenario.allocate(1, "a", 1, {DeviceType::cuda_driver, 0});
  scenario.allocate(2, "b", 1);
  scenario.allocate(3, "c", 1, {DeviceType::cuda, 10});
  scenario.allocate(4, "d", 1, {DeviceType::xpu, 0});
  scenario.allocate(5, "e", 1, {DeviceType::cuda, 9});
  EXPECT_THAT(devices_in_order(scenario.overview()), ElementsAre(4, 2, 3, 1, 0));
}

TEST(SelectDevices, ListsTheDevicesWhenOneIsNotThere) {
  Scenario scenario;
  scenario.allocate(1, "a", 1);
  scenario.allocate(2, "b", 1, kGpu);
  const Overview overview = scenario.overview();
  EXPECT_THAT(*select_devices(overview, std::nullopt), ElementsAre(1, 0));
  EXPECT_THAT(*select_devices(overview, "cuda:0"), ElementsAre(1));
  EXPECT_EQ(select_devices(overview, "cuda:7").error().message,
            "run.tide: no device 'cuda:7' (available: cuda:0, cpu)");
}

}  // namespace
}  // namespace tidemark
