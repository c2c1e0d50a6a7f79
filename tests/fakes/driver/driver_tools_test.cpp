// `tidemark run --driver on` if CUPTI or the driver is unavailable, or another tool needs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "driver_run.h"

namespace tidemark::testing {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

/// The number of lines that the driver wrote for one function.
std::ptrdiff_t calls(const DriverRun& result, const std::string& function) {
  return std::count_if(result.log.begin(), result.log.end(),
                       [&](const json& line) { return line.value("function", "") == function; });
}

TEST_F(DriverTest, AToolThatWasThereBeforeKeepsCupti) {
  const DriverRun result = run("tool_before");
  EXPECT_EQ(result.code, 0) << result.messages;
  // Its subscription succeeds (0), and it is called for each call that took memory.
  EXPECT_EQ(result.output, "0 " + std::to_string(calls(result, "cuMemAlloc_v2")) + "\n");
  EXPECT_THAT(result.messages, HasSubstr("another tool uses CUPTI"));
  ASSERT_EQ(result.recordings.size(), 1U);
  EXPECT_THAT(result.recordings[0].changes, IsEmpty());
  EXPECT_THAT(result.recordings[0].missing, ElementsAre(Pair("driver_off", 1)));
  EXPECT_THAT(result.recordings[0].reasons, Contains(HasSubstr("cupti_in_use")));
}

class LaterToolTest : public DriverTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(LaterToolTest, GetsCupti) {
  const DriverRun result = run(GetParam());
  EXPECT_EQ(result.code, 0) << result.messages;
  EXPECT_EQ(result.output, "0 " + std::to_string(calls(result, "cuMemAlloc_v2") - 1) + "\n");
  EXPECT_THAT(result.messages, HasSubstr("another tool takes CUPTI now"));
  ASSERT_EQ(result.recordings.size(), 1U);
  expect_changes(result.recordings[0].changes, {result.said.at(0)});
  EXPECT_THAT(result.recordings[0].missing, ElementsAre(Pair("driver_off", 1)));
}

INSTANTIATE_TEST_SUITE_P(Tools, LaterToolTest, ::testing::Values("tool_later", "tool_by_handle"),
                         [](const auto& scene) { return std::string(scene.param); });

TEST_F(DriverTest, AToolThatRegistersForActivitiesByHandleGetsCupti) {
  const DriverRun result = run("activities_by_handle");
  EXPECT_EQ(result.code, 0) << result.messages;
  ASSERT_EQ(result.recordings.size(), 1U);
  expect_changes(result.recordings[0].changes, {result.said.at(0)});
  EXPECT_THAT(result.recordings[0].reasons, Contains(HasSubstr("cupti_taken")));
}

TEST_F(DriverTest, CuptiThatRefuses) {
  const DriverRun held = run("plain", {.script = {{"subscribe", 39}}});
  EXPECT_EQ(held.code, 0);
  EXPECT_THAT(held.messages, HasSubstr("another tool uses CUPTI"));
  const DriverRun refused = run("plain", {.script = {{"subscribe", 35}}, .run = "--no-samples --driver on -f"});
  EXPECT_EQ(refused.code, 0);
  EXPECT_THAT(refused.messages, HasSubstr("CUptiResult 35"));
  EXPECT_EQ(delivered(held) + delivered(refused), 0U);
}

TEST_F(DriverTest, NoCupti) {
  const DriverRun result = run("plain", {.has_cupti = false});
  EXPECT_EQ(result.code, 0);
  EXPECT_GT(result.said.size(), 250U) << "the program runs as without Tidemark";
  EXPECT_THAT(result.messages, HasSubstr("libcupti.so was not found"));
}

TEST_F(DriverTest, DriverThatIsTooOld) {
  const DriverRun result = run("plain", {.is_old_driver = true});
  EXPECT_EQ(result.code, 0);
  EXPECT_GT(result.said.size(), 250U);
  EXPECT_THAT(result.messages, HasSubstr("older than 11.4"));
  EXPECT_EQ(delivered(result), 0U);
}

TEST_F(DriverTest, CuptiThatDoesNotKnowNewFunctions) {
  expect_recorded(run("plain", {.script = {{"largest_id", 640}}}));
}

TEST_F(DriverTest, OffUnlessAskedFor) {
  const DriverRun result = run("plain", {.run = "--no-samples --stacks native"});
  EXPECT_EQ(result.code, 0);
  EXPECT_GT(result.said.size(), 250U);
  EXPECT_THAT(result.recordings, IsEmpty());
  EXPECT_EQ(delivered(result), 0U);
}

TEST_F(DriverTest, AnotherToolsLibraryStays) {
  const DriverRun result = run("plain", {.environment = "CUDA_INJECTION64_PATH=/opt/other.so"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.messages, HasSubstr("/opt/other.so"));
  EXPECT_EQ(delivered(result), 0U);
}

}  // namespace
}  // namespace tidemark::testing
