// `tidemark run --driver on` and arrays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver_run.h"

namespace tidemark::testing {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST_F(DriverTest, ArraysHaveTheSizeOfTheirElements) {
  const DriverRun result = run("arrays", {.script = {{"returns", {{"cuArrayDestroy", {0, 1}}}}}});
  expect_recorded(result);
  // A pyramid of 100 x 60: 6000 + 50*30 + 25*15 + 12*7 + 6*3 + 3*1 + 1; one of 64 x 64 has 4096 + 1024 + 256 + 64
  // texels.
  std::vector<std::int64_t> bytes;
  for (const Change& change : result.recordings.at(0).changes) bytes.push_back(change.bytes);
  EXPECT_THAT(bytes, ElementsAre(4000, 1920 * 1080 * 4, 64 * 32 * 16 * 4, 256 * 10 * 16, 7981 * 4, 5440 * 3,
                                 -1920 * 1080 * 4, -7981 * 4, -4000, -5440 * 3));
}

TEST_F(DriverTest, ArraysOfUnknownSizeAreLosses) {
  const DriverRun result = run("unknown_arrays");
  EXPECT_EQ(result.code, 0) << result.messages;
  ASSERT_EQ(result.recordings.size(), 1U);
  std::vector<std::int64_t> bytes;
  for (const Change& change : result.recordings[0].changes) bytes.push_back(change.bytes);
  EXPECT_THAT(bytes, ElementsAre(256, -256));
  EXPECT_THAT(result.recordings[0].missing, ElementsAre(Pair("driver_off", 1)));
  EXPECT_THAT(result.recordings[0].reasons, Contains(HasSubstr("array_format")));
}

}  // namespace
}  // namespace tidemark::testing
