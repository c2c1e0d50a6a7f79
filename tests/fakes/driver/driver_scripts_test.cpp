// The programs that scripts/gpu_check.py runs on a GPU work; here with the stand-ins, and without PyTorch.
#include <gtest/gtest.h>

#include "driver_run.h"

namespace tidemark::testing {
namespace {

using nlohmann::json;

std::string python(const std::string& script) {
  return FAKES_PYTHON " -S " FAKES_SOURCES "/" + script;
}

TEST_F(DriverTest, ProgramThatKnowsItsChanges) {
  const DriverRun result = run("", {.program = python("tests/integration/recorder/driver_calls_gpu.py")});
  EXPECT_EQ(result.code, 0) << result.messages;
  ASSERT_EQ(result.recordings.size(), 1U);
  const json said = json::parse(result.output);
  std::vector<std::int64_t> bytes;
  for (const Change& change : result.recordings[0].changes) bytes.push_back(change.bytes);
  EXPECT_EQ(bytes, said["changes"].get<std::vector<std::int64_t>>());
  EXPECT_EQ(bytes.size(), result.said.size());
  EXPECT_EQ(said["refusals"].size(), 5U);
  for (const auto& [call, refused] : said["refusals"].items()) EXPECT_NE(refused, 0) << call;
  EXPECT_EQ(said["subscribed_by_handle"], 0);
}

TEST_F(DriverTest, BenchmarkOfCalls) {
  const std::string figures = folder_.at("figures");
  const DriverRun result = run("", {.program = python("bench/driver_calls.py") + " --rounds 2 --json " + figures});
  EXPECT_EQ(result.code, 0) << result.messages;
  const json found = json::parse(text_of(figures));
  EXPECT_EQ(found.size(), 4U);
  for (const auto& [name, call] : found.items()) {
    for (const char* what : {"allocation", "free"}) {
      EXPECT_GT(call[what]["plain_ns"].get<double>(), 0) << name;
      EXPECT_TRUE(call[what].contains("empty_added_ns") && call[what].contains("tidemark_added_ns")) << name;
    }
  }
  // Both callbacks of each call came to Tidemark first, then to the empty subscriber.
  ASSERT_EQ(result.recordings.size(), 1U);
  EXPECT_GT(result.recordings[0].changes.size(), 1000U);
  std::vector<std::uint64_t> counts;
  for (const json& line : result.log) {
    if (line.contains("delivered")) counts.push_back(line["delivered"]);
  }
  ASSERT_EQ(counts.size(), 2U);
  EXPECT_GT(counts[1], 4000U);
}

}  // namespace
}  // namespace tidemark::testing
