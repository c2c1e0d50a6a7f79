#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tidemark/recording.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace {

using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kSnapshot[] = TIDEMARK_SNAPSHOTS "/default.pickle.xz";

TEST(Recording, HasTheNumbersOfTheSummary) {
  const tidemark::Recording recording(kSnapshot);
  EXPECT_EQ(recording.program().path, kSnapshot);
  const auto devices = recording.devices();
  const Json summary = Json::parse(recording.analyze("summary"));
  ASSERT_FALSE(devices.empty());
  ASSERT_EQ(devices.size(), summary["devices"].size());
  EXPECT_EQ(devices.front().device, summary["devices"][0]["device"]);
  EXPECT_EQ(devices.front().peak_allocated_bytes, summary["devices"][0]["peak_allocated_bytes"]);
  EXPECT_EQ(devices.front().peak_reserved_bytes, summary["devices"][0]["peak_reserved_bytes"].get<std::uint64_t>());
}

TEST(Recording, RunsEachAnalysisThatNeedsNoOther) {
  tidemark::Recording recording(kSnapshot);
  EXPECT_THAT(tidemark::analyses(), Contains("leaks"));
  for (const char* name : {"leaks", "fragmentation", "explain", "timeline"}) {
    EXPECT_TRUE(Json::parse(recording.analyze(name)).is_object()) << name;
  }
  const Json one = Json::parse(recording.analyze("timeline", {{"device", "cuda:0"}}));
  EXPECT_FALSE(one.empty());
  const tidemark::Recording moved = std::move(recording);
  EXPECT_FALSE(moved.devices().empty());
  EXPECT_THROW((void)recording.devices(), tidemark::Error);  // NOLINT: as documented
  EXPECT_THROW((void)recording.program(), tidemark::Error);
  EXPECT_THROW((void)recording.analyze("leaks"), tidemark::Error);
}

TEST(Recording, ErrorsSayWhatIsWrong) {
  const auto message_of = [](auto&& act) {
    try {
      act();
    } catch (const tidemark::Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message_of([] { tidemark::Recording("/nowhere/run.tide"); }), HasSubstr("/nowhere/run.tide"));
  const tidemark::Recording recording(kSnapshot);
  EXPECT_THAT(message_of([&] { (void)recording.analyze("lieks"); }), HasSubstr("there is no analysis lieks"));
  EXPECT_THAT(message_of([&] { (void)recording.analyze("leaks", {{"colour", "red"}}); }), HasSubstr("colour"));
  EXPECT_THAT(message_of([&] { (void)recording.analyze("leaks", {{"device", "cuda:9"}}); }), HasSubstr("cuda:9"));
}

}  // namespace
