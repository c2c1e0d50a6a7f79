// The ledger of a run without a GPU: the stand-ins for the driver, for NVML and for PyTorch together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "driver_run.h"

namespace tidemark::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::Pair;

/// At a time when nothing changes: processes are listed once a second, while others allocate.
json ledger(const std::string& path) {
  const std::string command = TIDEMARK_PROGRAM " ledger --at 1.7s --format json " + path + " >" + path + ".ledger";
  EXPECT_EQ(std::system(command.c_str()), 0);
  return json::parse(text_of(path + ".ledger"))["devices"][0]["ledger"];
}

constexpr std::int64_t kContext = 500 * kMiB;
constexpr std::int64_t kOther = 2048 * kMiB;

/// The whole path without a GPU: NVML reports the driver's memory, a context, and another process.
class DriverLedgerTest : public DriverTest, public ::testing::WithParamInterface<const char*> {
 protected:
  /// Runs the training with these devices of NVML. `segments`: FAKES_SEGMENTS.
  void train(const json& devices, const std::string& segments, const std::string& environment = "") {
    const std::string nvml = folder_.write("nvml.json", json{{"devices", devices}}.dump());
    expect_recorded(
        run("training", {.run = "--driver on --stacks none --sample-interval 10ms",
                         .environment = environment + " FAKES_SEGMENTS=" + segments + " FAKES_NVML=" + nvml +
                                        " FAKES_SAID=" + folder_.at("said") + " FAKES_HEARD=" + folder_.at("heard")}));
  }

  [[nodiscard]] json gpu(const std::string& uuid) const {
    return {{"uuid", uuid},
            {"memory", {{"total", (80 << 10) * kMiB}, {"reserved", 500 * kMiB}, {"used", kOther}}},
            {"processes", {{{"pid", "parent"}, {"bytes", kOther}}}}};
  }
  /// The GPU whose memory the program's driver gives out, as its device 0.
  [[nodiscard]] json gpu_of_program(const std::string& uuid) const {
    json device = gpu(uuid);
    device["driver_log"] = folder_.at("log");
    device["driver_index"] = 0;
    device["context"] = kContext;
    return device;
  }

  void expect_explained() const {
    const json found = ledger(folder_.at("run.tide"));
    std::map<std::string, std::int64_t> bytes;
    for (const json& line : found["lines"]) {
      bytes[line["part"].get<std::string>() + " " + line.value("name", "")] +=
          line["bytes"].is_null() ? -1 : line["bytes"].get<std::int64_t>();
    }
    // PyTorch has 27 MiB of blocks, in segments of 2.
    EXPECT_THAT(bytes, ElementsAre(Pair("context ", kContext), Pair("library NCCL", 5 * kMiB),
                                   Pair("library cuBLAS", 32 * kMiB), Pair("library fakes_driver_program", 3 * kMiB),
                                   Pair("process timeout", kOther), Pair("pytorch ", 28 * kMiB)));
    EXPECT_EQ(found["used_bytes"], kContext + kOther + 68 * kMiB);
    EXPECT_EQ(found["unexplained_bytes"], 0);
  }
};

TEST_P(DriverLedgerTest, ExplainsAllOfADevice) {
  train(json::array({gpu_of_program("GPU-d111")}), GetParam());
  expect_explained();
}

INSTANTIATE_TEST_SUITE_P(Segments, DriverLedgerTest, ::testing::Values("blocks", "expandable"),
                         [](const auto& segments) { return std::string(segments.param); });

class VisibleDevicesTest : public DriverLedgerTest {};

/// The program's cuda:0 is NVML's second GPU, by number or by UUID.
TEST_P(VisibleDevicesTest, ExplainsTheDeviceThatTheProgramUses) {
  train(json::array({gpu("GPU-d111"), gpu_of_program("GPU-d222")}), "blocks",
        std::string("CUDA_VISIBLE_DEVICES=") + GetParam());
  expect_explained();
}

INSTANTIATE_TEST_SUITE_P(Driver, VisibleDevicesTest, ::testing::Values("1", "GPU-d222"));

}  // namespace
}  // namespace tidemark::testing
