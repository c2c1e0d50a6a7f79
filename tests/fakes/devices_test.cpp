// `tidemark devices` with a driver whose devices are scripted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "temporary_folder.h"

namespace tidemark::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kMiB = 1 << 20;

class DevicesTest : public ::testing::Test {
 protected:
  struct Output {
    int code = -1;
    std::string text;  ///< stdout and stderr
  };

  Output run(const json& script, const std::string& arguments = "", const std::string& environment = "") {
    const std::string command =
        environment + " LD_LIBRARY_PATH=" FAKES_NVML_FOLDER " FAKES_NVML=" + folder_.write("nvml.json", script.dump()) +
        " " TIDEMARK_PROGRAM " devices " + arguments + " 2>&1";
    std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
    Output output;
    char part[4096];
    for (std::size_t got = 0; (got = std::fread(part, 1, sizeof(part), pipe.get())) > 0;) output.text.append(part, got);
    output.code = WEXITSTATUS(::pclose(pipe.release()));
    return output;
  }

  static json two_gpus() {
    return {{"driver", "580.1"},
            {"cuda", 13000},
            {"devices",
             {{{"name", "Fake H100"},
               {"uuid", "GPU-1111"},
               {"bus", 0x65},
               {"memory", {{"total", 81559 * kMiB}, {"reserved", 551 * kMiB}, {"used", 2048 * kMiB}}},
               {"utilization", 37},
               {"temperature", 41},
               {"power", 71500},
               {"processes", {{{"pid", "parent"}, {"bytes", 500 * kMiB}}, {{"pid", "caller"}}}}},
              {{"name", "Fake H100"}, {"uuid", "GPU-2222"}, {"bus", 0x66}}}}};
  }

  TemporaryFolder folder_;
};

TEST_F(DevicesTest, Text) {
  const Output output = run(two_gpus());
  EXPECT_EQ(output.code, 0);
  EXPECT_THAT(output.text, HasSubstr("NVIDIA driver 580.1, CUDA 13.0\n"
                                     "\n"
                                     "GPU 0: Fake H100\n"
                                     "  CUDA            cuda:0\n"
                                     "  UUID            GPU-1111\n"
                                     "  PCI address     0000:65:00.0\n"
                                     "  memory          2.0 GiB used of 79.6 GiB, 551.0 MiB reserved by the driver\n"
                                     "  utilization     37 %\n"
                                     "  temperature     41 °C\n"
                                     "  power           71.5 W\n"));
  EXPECT_THAT(output.text, HasSubstr("GPU 1: Fake H100\n"
                                     "  CUDA            cuda:1\n"
                                     "  UUID            GPU-2222\n"
                                     "  PCI address     0000:66:00.0\n"
                                     "  memory          0 B used of 0 B, 0 B reserved by the driver\n"
                                     "  utilization     n/a\n"
                                     "  temperature     n/a\n"
                                     "  power           n/a\n"
                                     "  processes       none\n"
                                     "\n"
                                     "Host memory: "));
}

TEST_F(DevicesTest, Json) {
  const Output output = run(two_gpus(), "--format json");
  EXPECT_EQ(output.code, 0);
  const json found = json::parse(output.text);
  EXPECT_EQ(found["drivers"], json::parse(R"([{"vendor": "nvidia", "version": "NVIDIA driver 580.1, CUDA 13.0",
                                               "problem": null}])"));
  const json& device = found["devices"][0];
  EXPECT_EQ(device["total_bytes"], 81559 * kMiB);
  EXPECT_EQ(device["used_bytes"], 2048 * kMiB);
  EXPECT_EQ(device["driver_reserved_bytes"], 551 * kMiB);
  EXPECT_EQ(device["power_milliwatts"], 71500);
  EXPECT_EQ(device["cuda_index"], 0);
  EXPECT_EQ(device["processes"].size(), 2U);
  EXPECT_EQ(device["processes"][0]["bytes"], 500 * kMiB);
  EXPECT_EQ(device["processes"][1]["bytes"], nullptr);
  EXPECT_EQ(found["devices"][1]["utilization_percent"], nullptr);
  EXPECT_GT(found["host"]["total_bytes"].get<std::uint64_t>(), kMiB);
}

TEST_F(DevicesTest, VisibleDevices) {
  const json found = json::parse(run(two_gpus(), "--format json", "CUDA_VISIBLE_DEVICES=GPU-2222").text);
  EXPECT_EQ(found["devices"][0]["cuda_index"], nullptr);
  EXPECT_EQ(found["devices"][0]["visible_to_cuda"], false);
  EXPECT_EQ(found["devices"][1]["cuda_index"], 0);
  EXPECT_THAT(run(two_gpus(), "", "CUDA_VISIBLE_DEVICES=1").text,
              HasSubstr("  CUDA            not visible (CUDA_VISIBLE_DEVICES=1)\n"));
  EXPECT_THAT(run(two_gpus(), "", "CUDA_VISIBLE_DEVICES=").text, HasSubstr("hides every GPU"));
}

TEST_F(DevicesTest, LostGpuIsALineAndTheOthersFollow) {
  json script = two_gpus();
  script["devices"][0]["returns"]["nvmlDeviceGetMemoryInfo_v2"] = 15;
  const Output output = run(script);
  EXPECT_EQ(output.code, 0);
  EXPECT_THAT(output.text, HasSubstr("lost            GPU 0 (GPU-1111) does not answer any more"));
  EXPECT_THAT(output.text, HasSubstr("GPU 1: Fake H100"));
}

TEST_F(DevicesTest, HostileNamesDoNotReachTheTerminal) {
  json script = two_gpus();
  script["devices"][0]["name"] = "evil\x1b[2J";
  EXPECT_THAT(run(script).text, Not(HasSubstr("\x1b")));
}

TEST_F(DevicesTest, MigInstances) {
  json script = two_gpus();
  script["devices"][0]["mig"] = {{{"name", "Fake MIG 1g.10gb"},
                                  {"uuid", "MIG-3"},
                                  {"memory", {{"total", 10 * kMiB}, {"used", kMiB}}},
                                  {"processes", {{{"pid", "caller"}, {"bytes", kMiB}}}}}};
  const Output output = run(script);
  EXPECT_THAT(output.text, HasSubstr("  CUDA            only its MIG instances are visible\n"));
  EXPECT_THAT(output.text, HasSubstr("  MIG             enabled; instances below\n  processes       n/a\n"));
  EXPECT_THAT(output.text, HasSubstr("GPU 0 instance 0: Fake MIG 1g.10gb\n"));
}

TEST_F(DevicesTest, DriverThatDoesNotWork) {
  const Output output = run({{"init", 18}});
  EXPECT_EQ(output.code, 2);
  EXPECT_THAT(output.text, HasSubstr("No GPU found.\n"));
  EXPECT_THAT(output.text,
              HasSubstr("tidemark: NVIDIA's library and its kernel driver are of different versions; reboot"));
}

}  // namespace
}  // namespace tidemark::testing
