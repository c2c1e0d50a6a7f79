// The ledger of a run without a GPU: the stand-ins for the driver, for NVML and for PyTorch together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "driver_run.h"

namespace tidemark::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

/// At a time when nothing changes: processes are listed once a second, while others allocate.
json ledger(const std::string& path) {
  const std::string command = TIDEMARK_PROGRAM " ledger --at 1.7s --format json " + path + " >" + path + ".ledger";
  EXPECT_EQ(std::system(command.c_str()), 0);
  return json::parse(text_of(path + ".ledger"))["devices"][0]["ledger"];
}

/// The whole path without a GPU: what NVML reports is what the driver gave out, a context, and another process.
class DriverLedgerTest : public DriverTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(DriverLedgerTest, ExplainsAllOfADevice) {
  constexpr std::int64_t kContext = 500 * kMiB;
  constexpr std::int64_t kOther = 2048 * kMiB;
  const json device = {{"uuid", "GPU-1111"},
                       {"memory", {{"total", (80 << 10) * kMiB}, {"reserved", 500 * kMiB}, {"used", kOther}}},
                       {"processes", {{{"pid", 1}, {"bytes", kOther}}}},
                       {"driver_log", folder_.at("log")},
                       {"context", kContext}};
  const std::string nvml = folder_.write("nvml.json", json{{"devices", json::array({device})}}.dump());
  const DriverRun result =
      run("training", {.run = "--driver on --stacks none --sample-interval 10ms",
                       .environment = std::string("FAKES_SEGMENTS=") + GetParam() + " FAKES_NVML=" + nvml +
                                      " FAKES_SAID=" + folder_.at("said") + " FAKES_HEARD=" + folder_.at("heard")});
  expect_recorded(result);
  const json found = ledger(folder_.at("run.tide"));
  std::map<std::string, std::int64_t> bytes;  // of PyTorch 27 MiB of blocks, in segments of 2
  for (const json& line : found["lines"]) {
    bytes[line["part"].get<std::string>() + " " + line.value("name", "")] +=
        line["bytes"].is_null() ? -1 : line["bytes"].get<std::int64_t>();
  }
  EXPECT_THAT(bytes,
              ElementsAre(Pair("context ", kContext), Pair("library NCCL", 5 * kMiB), Pair("library cuBLAS", 32 * kMiB),
                          Pair("library fakes_driver_program", 3 * kMiB),
                          Pair(AllOf(StartsWith("process "), Not("process ")), kOther), Pair("pytorch ", 28 * kMiB)));
  EXPECT_EQ(found["used_bytes"], kContext + kOther + 68 * kMiB);
  EXPECT_EQ(found["unexplained_bytes"], 0);
}

INSTANTIATE_TEST_SUITE_P(Segments, DriverLedgerTest, ::testing::Values("blocks", "expandable"),
                         [](const auto& segments) { return std::string(segments.param); });

}  // namespace
}  // namespace tidemark::testing
