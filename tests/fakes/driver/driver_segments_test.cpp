// PyTorch's reserved memory after it released segments, and its page-locked memory, without `--driver on`: compared
// with the driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "driver_run.h"

namespace tidemark::testing {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;

class SegmentsTest : public DriverTest, public ::testing::WithParamInterface<const char*> {
 protected:
  DriverRun empty_cache(const std::string& options) {
    const std::string segments = GetParam();
    return run("empty_cache", {.script = {{"devices", 2}},
                               .run = "--no-samples --stacks none " + options,
                               .environment = "FAKES_SEGMENTS='" + segments + "' FAKES_SAID=" + folder_.at("said") +
                                              " FAKES_HEARD=" + folder_.at("heard")});
  }

  /// Reserved memory after each event of these kinds.
  std::vector<std::int64_t> reserved(const std::string& device, const std::string& kind) const {
    const std::string recording = folder_.at("run.tide");
    const std::string command = TIDEMARK_PROGRAM " dump --format json " + recording + " >" + recording + ".jsonl";
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::istringstream lines(text_of(recording + ".jsonl"));
    std::vector<std::int64_t> values;
    for (std::string text; std::getline(lines, text);) {
      const json event = json::parse(text).value("event", json::object());
      if (event.value("device", "") != device || (!kind.empty() && event["kind"] != kind)) continue;
      values.push_back(event["total_reserved"]);
    }
    return values;
  }
};

/// The driver's memory after each call that released some.
std::vector<std::int64_t> left(const std::vector<Change>& said, const std::string& account) {
  std::vector<std::int64_t> values;
  std::int64_t level = 0;
  for (const Change& change : said) {
    if (change.account != account) continue;
    level += change.bytes;
    if (change.bytes < 0) values.push_back(level);
  }
  return values;
}

TEST_P(SegmentsTest, ReservedEqualsDriverMemory) {
  const DriverRun result = empty_cache("");
  EXPECT_EQ(result.code, 0) << result.messages;
  ASSERT_EQ(result.recordings.size(), 1U) << result.messages;
  EXPECT_THAT(result.recordings[0].missing, IsEmpty());
  for (const char* number : {"0", "1"}) {
    const std::vector<std::int64_t> released = left(result.said, std::string("cuda-driver:") + number);
    ASSERT_EQ(released.size(), GetParam() == std::string("blocks") ? 2U : 1U);
    EXPECT_EQ(reserved(std::string("cuda:") + number, "release"), released);
    EXPECT_EQ(released.back(), 0);
  }
  EXPECT_EQ(reserved("cuda:0", "").back(), 0);
  EXPECT_EQ(reserved("cuda:1", "").back(), 8 * kMiB);
  const auto recorded = levels(result.recordings[0].changes);
  EXPECT_EQ(recorded.at("cuda-host"), levels(result.said).at("cuda-host"));
  EXPECT_EQ(recorded.at("cuda-host"), (Level{5 * kMiB, 7 * kMiB + (64 << 10)}));
  EXPECT_THAT(recorded, Not(Contains(Key("cuda-driver:0"))));
}

// The driver's own calls are complete and unique.
TEST_P(SegmentsTest, NothingIsRecordedTwiceWithTheDriversCalls) {
  const DriverRun result = empty_cache("--driver on");
  ASSERT_EQ(result.recordings.size(), 1U) << result.messages;
  EXPECT_EQ(levels(result.recordings[0].changes), levels(result.said));
  EXPECT_EQ(reserved("cuda:1", "release"), left(result.said, "cuda-driver:1"));
}

INSTANTIATE_TEST_SUITE_P(Segments, SegmentsTest, ::testing::Values("blocks", "expandable", "expandable by dlsym"),
                         [](const auto& segments) {
                           std::string name = segments.param;
                           std::ranges::replace(name, ' ', '_');
                           return name;
                         });

}  // namespace
}  // namespace tidemark::testing
