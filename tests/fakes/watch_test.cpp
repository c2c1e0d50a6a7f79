// profile, oom, leak and fragment with a driver whose devices are scripted, and without any.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "temporary_folder.h"

namespace tidemark::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr const char* kNoNvml = "/nonexistent";

// Excludes other recordings on this machine.
const std::string kOfThisProcess = " --pid " + std::to_string(::getpid());

struct Output {
  int code = -1;
  std::string text;  ///< stdout and stderr
};

class WatchTest : public ::testing::Test {
 protected:
  std::string command(const std::string& arguments, const std::string& libraries = FAKES_NVML_FOLDER) {
    return "LD_LIBRARY_PATH=" + libraries + " FAKES_NVML=" + folder_.write("nvml.json", script_.dump()) + " exec " +
           TIDEMARK_PROGRAM " " + arguments + " 2>&1";
  }
  Output run(const std::string& arguments, const std::string& libraries = FAKES_NVML_FOLDER) {
    std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command(arguments, libraries).c_str(), "r"), ::pclose);
    Output output;
    char part[4096];
    for (std::size_t got = 0; (got = std::fread(part, 1, sizeof(part), pipe.get())) > 0;) output.text.append(part, got);
    output.code = WEXITSTATUS(::pclose(pipe.release()));
    return output;
  }
  /// Runs until there is a line on stdout, then sends the signal.
  Output run_until_signal(const std::string& arguments, int signal) {
    std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(("echo $$; " + command(arguments)).c_str(), "r"), ::pclose);
    char line[4096];
    const pid_t pid = std::fgets(line, sizeof(line), pipe.get()) == nullptr ? -1 : std::atoi(line);
    Output output;
    bool sent = pid <= 0;
    while (std::fgets(line, sizeof(line), pipe.get()) != nullptr) {
      output.text += line;
      if (!sent) ::kill(pid, signal);
      sent = true;
    }
    output.code = WEXITSTATUS(::pclose(pipe.release()));
    return output;
  }
  static json read(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return json::parse(text.str());
  }
  std::string report(const std::string& name) { return folder_.at(name); }

  TemporaryFolder folder_;
  json script_ = {{"driver", "580.1"},
                  {"cuda", 13000},
                  {"devices",
                   {{{"name", "Fake H100"},
                     {"uuid", "GPU-1111"},
                     {"bus", 0x65},
                     {"memory", {{"total", 1000 * kMiB}, {"reserved", 20 * kMiB}, {"used", 300 * kMiB}}},
                     {"utilization", 37},
                     {"temperature", 41},
                     {"power", 71500},
                     {"processes", {{{"pid", "parent"}, {"bytes", 200 * kMiB}}}}},
                    {{"name", "Fake H100"},
                     {"uuid", "GPU-2222"},
                     {"bus", 0x66},
                     {"memory", {{"total", 1000 * kMiB}, {"reserved", 0}, {"used", 950 * kMiB}}}}}}};
};

// Keys and units of the earlier Python monitors.
TEST_F(WatchTest, ProfileReport) {
  const Output output = run("profile --duration 0.5 --interval 0.05 --plot --output " + report("p.json"));
  EXPECT_EQ(output.code, 0);
  EXPECT_THAT(output.text, HasSubstr("GPU 0: Fake H100\n"));
  const json found = read(report("p.json"));
  EXPECT_TRUE(found["timestamp"].is_string());
  const json& device = found["devices"]["0"];
  EXPECT_EQ(device["current_memory"]["allocated"], 300 * kMiB);
  EXPECT_EQ(device["current_memory"]["free"], 680 * kMiB);
  EXPECT_EQ(device["current_memory"]["total"], 1000 * kMiB);
  EXPECT_EQ(device["current_memory"]["utilization"], 30.0);
  EXPECT_EQ(device["peak_memory"], 300 * kMiB);
  EXPECT_EQ(device["statistics"]["avg_utilization"], 30.0);
  EXPECT_EQ(device["statistics"]["max_utilization"], 30.0);
  EXPECT_EQ(device["statistics"]["avg_fragmentation"], nullptr);
  EXPECT_GE(device["statistics"]["num_snapshots"], 1);
  EXPECT_EQ(device["history"]["used_bytes"][0], 300 * kMiB);
  EXPECT_EQ(found["devices"]["1"]["gpu_utilization_percent"]["avg"], nullptr) << "not supported";
  EXPECT_EQ(found["processes"][0]["devices"]["0"]["bytes"], 200 * kMiB);
  EXPECT_GT(found["processes"][0]["rss_bytes"], 0);
  std::ifstream picture(report("p.png"), std::ios::binary);
  std::string begin(8, '\0');
  picture.read(begin.data(), 8);
  EXPECT_EQ(begin, "\x89PNG\r\n\x1a\n");
}

TEST_F(WatchTest, OomReport) {
  const Output output = run("oom --threshold 80 --duration 0.5 --interval 0.05 --output " + report("oom.json"));
  EXPECT_EQ(output.code, 0);
  const json found = read(report("oom.json"));
  const json& low = found["devices"]["0"]["risk_assessment"];
  EXPECT_EQ(low["risk_level"], "low");
  const json& risk = found["devices"]["1"]["risk_assessment"];
  EXPECT_THAT((std::vector<json>{"medium", "high", "critical"}), ::testing::Contains(risk["risk_level"]));
  for (const char* key : {"confidence", "current_usage_percent", "growth_rate_mb_per_sec", "predicted_oom_time_seconds",
                          "recommendation"}) {
    EXPECT_TRUE(risk.contains(key)) << key;
  }
  EXPECT_EQ(risk["current_usage_percent"], 95.0);
  EXPECT_EQ(risk["predicted_oom_time_seconds"], nullptr) << "it does not grow";
  EXPECT_THAT(risk["recommendation"].get<std::string>(), HasSubstr("95.0% of 1000.0 MiB is used"));
  ASSERT_FALSE(found["changes"].empty());
  EXPECT_EQ(found["changes"][0]["device"], "1");
}

TEST_F(WatchTest, GrowthThatReachesTheLimitIsARisk) {
  // So fast that gaps between samples, on a busy machine, do not look like a warm-up that ends before the limit.
  script_["devices"][0]["grows"] = 100 * kMiB;
  (void)run("oom --duration 4 --interval 0.05 --devices 0 --output " + report("oom.json"));
  const json found = read(report("oom.json"));
  ASSERT_EQ(found["devices"].size(), 1U);
  const json& risk = found["devices"]["0"]["risk_assessment"];
  EXPECT_NE(risk["risk_level"], "low") << risk;
  EXPECT_GT(risk["growth_rate_mb_per_sec"], 0);
  EXPECT_GT(risk["predicted_oom_time_seconds"], 0);
}

TEST_F(WatchTest, TimesHaveUnits) {
  const Output output = run("profile --duration 200ms --interval 0.001min --output " + report("p.json"));
  EXPECT_EQ(output.code, 0) << output.text;
  EXPECT_EQ(read(report("p.json"))["interval_seconds"], 0.06);
}

TEST_F(WatchTest, LeakReport) {
  script_["devices"][0]["grows"] = 20 * kMiB;
  const Output output = run("leak --threshold 10 --enable-tracking --duration 4 --interval 0.05" + kOfThisProcess +
                            " --output " + report("leak.json"));
  EXPECT_EQ(output.code, 0);
  EXPECT_THAT(output.text, HasSubstr("Growth by stack and module: n/a"));
  const json found = read(report("leak.json"));
  EXPECT_EQ(found["threshold_mb_per_minute"], 10.0);
  EXPECT_EQ(found["tracking"]["enabled"], true);
  EXPECT_EQ(found["tracking"]["sources"], nullptr);
  const json& first = found["growth"][0];
  EXPECT_EQ(first["memory"], "device");
  EXPECT_EQ(first["device"], "0");
  EXPECT_EQ(first["verdict"], "uncertain") << "four seconds are too short to tell: " << first;
  EXPECT_EQ(first["classification"], "too_few_steps");
  EXPECT_GT(first["growth_mb_per_minute"], 10);
  EXPECT_THAT(output.text, HasSubstr("too short to tell"));
  EXPECT_EQ(found["growth"][1]["device"], "1");
  EXPECT_NE(found["growth"][1]["verdict"], "growing");
}

TEST_F(WatchTest, FragmentationIsNotKnownFromOutside) {
  const Output output =
      run("fragment --duration 0.3 --interval 0.1 --plot" + kOfThisProcess + " --output " + report("f.json"));
  EXPECT_EQ(output.code, 0);
  EXPECT_THAT(output.text, HasSubstr("is not recorded: what is shown is what the driver and the kernel say of it"));
  EXPECT_THAT(output.text, HasSubstr("unused          n/a: "));
  const json found = read(report("f.json"));
  EXPECT_EQ(found["devices"]["0"]["avg_fragmentation"], nullptr);
  EXPECT_THAT(found["devices"]["0"]["unknown_because"].get<std::string>(), HasSubstr("tidemark run"));
}

TEST_F(WatchTest, MachineWithoutGpu) {
  const Output output = run("profile --duration 0.3 --interval 0.05 --output " + report("p.json"), kNoNvml);
  EXPECT_EQ(output.code, 0);
  EXPECT_THAT(output.text, HasSubstr("Note: no GPU found"));
  const json found = read(report("p.json"));
  ASSERT_EQ(found["devices"].size(), 1U);
  const json& device = found["devices"]["cpu"];
  EXPECT_GT(device["current_memory"]["allocated"], 0);
  EXPECT_EQ(device["current_memory"]["total"], found["host"]["limit_bytes"]);
}

TEST_F(WatchTest, BrokenDriverIsReportedAndTheHostWatched) {
  script_ = {{"init", 18}};
  const Output output = run("profile --duration 0.2 --interval 0.05");
  EXPECT_EQ(output.code, 0);
  EXPECT_THAT(output.text, HasSubstr("Note: NVIDIA's library and its kernel driver are of different versions"));
  EXPECT_THAT(output.text, HasSubstr("cpu: "));
}

TEST_F(WatchTest, LostDeviceIsALineAndTheOthersGoOn) {
  script_["devices"][0]["returns"]["nvmlDeviceGetMemoryInfo_v2"] = 15;
  const Output output = run("profile --duration 0.5 --interval 0.05 --output " + report("p.json"));
  EXPECT_EQ(output.code, 0);
  EXPECT_THAT(output.text, HasSubstr("Note: GPU 0 (GPU-1111) does not answer any more"));
  const json found = read(report("p.json"));
  EXPECT_EQ(found["devices"]["0"]["current_memory"]["allocated"], nullptr);
  EXPECT_EQ(found["devices"]["0"]["peak_memory"], nullptr);
  EXPECT_EQ(found["devices"]["1"]["peak_memory"], 950 * kMiB);
}

TEST_F(WatchTest, MissingDriverValuesAreNull) {
  for (const char* function : {"nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2"}) {
    script_["devices"][0]["returns"][function] = 3;
  }
  const Output output = run("oom --duration 0.3 --interval 0.05 --devices 0 --output " + report("o.json"));
  EXPECT_EQ(output.code, 0);
  EXPECT_THAT(output.text, HasSubstr("GPU 0: the driver does not say how much memory is used"));
  const json risk = read(report("o.json"))["devices"]["0"]["risk_assessment"];
  EXPECT_EQ(risk["risk_level"], nullptr);
  EXPECT_EQ(risk["growth_rate_mb_per_sec"], nullptr);
}

TEST_F(WatchTest, MigInstances) {
  script_["devices"][0]["mig"] = {{{"name", "Fake MIG"}, {"uuid", "MIG-3"}, {"memory", {{"total", 100}, {"used", 7}}}}};
  (void)run("profile --duration 0.2 --interval 0.05 --devices 0:0 --output " + report("p.json"));
  const json found = read(report("p.json"));
  EXPECT_EQ(found["devices"].size(), 1U);
  EXPECT_EQ(found["devices"]["0:0"]["current_memory"]["allocated"], 7);
}

TEST_F(WatchTest, ProcessThatEnds) {
  std::unique_ptr<FILE, int (*)(FILE*)> sleeper(::popen("echo $$; exec sleep 1", "r"), ::pclose);
  char line[64] = "";
  ASSERT_NE(std::fgets(line, sizeof(line), sleeper.get()), nullptr);
  const std::string pid = std::to_string(std::atoi(line));
  const Output output = run("profile --duration 600 --interval 0.05 --pid " + pid + " --output " + report("p.json"));
  EXPECT_EQ(output.code, 0);
  EXPECT_THAT(output.text, HasSubstr("Note: process " + pid + " has ended"));
  const json found = read(report("p.json"));
  EXPECT_EQ(found["ended_by"], "process_ended");
  EXPECT_EQ(found["processes"].size(), 1U);
  EXPECT_EQ(found["processes"][0]["name"], "sleep");
  EXPECT_GT(found["processes"][0]["peak_rss_bytes"], 0);
}

TEST_F(WatchTest, SignalsEndItWithAReport) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Output output =
        run_until_signal("oom --monitor --threshold 50 --interval 0.05 --output " + report("o.json"), signal);
    EXPECT_EQ(output.code, 0);
    EXPECT_THAT(output.text, HasSubstr(" GPU 1: medium (was low)"));
    EXPECT_THAT(output.text, HasSubstr("Note: stopped by a signal"));
    EXPECT_EQ(read(report("o.json"))["ended_by"], "interrupted");
  }
}

TEST_F(WatchTest, MistakesAreReportedFirst) {
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {"profile --devices 7", "--devices 7: there is no such device here (there is 0, 1, cpu)"},
      {"profile --pid 999999999", "--pid 999999999: there is no such process here"},
      {"profile --pid x", "--pid x: not a process ID"},
      {"profile --output /nonexistent/p.json", "/nonexistent/p.json"},
      {"profile --plot", "--plot: the picture is written beside the report"},
      {"profile --interval 0", "--interval 0: from 0.01 to 3600 seconds"},
      {"profile --duration 0", "--duration 0: seconds, more than 0"},
      {"profile --duration 1x", "--duration: invalid value '1x' (expected seconds, or a time such as 500ms, 10min"},
      {"oom --threshold 0", "--threshold 0: percent"},
      {"leak --threshold -1", "--threshold -1: MB per minute"}};
  for (const auto& [arguments, problem] : mistakes) {
    const Output output = run(arguments);
    EXPECT_EQ(output.code, 2) << arguments;
    EXPECT_THAT(output.text, StartsWith("tidemark: " + problem)) << arguments;
  }
}

TEST_F(WatchTest, HostileNamesDoNotReachTheTerminal) {
  script_["devices"][0]["name"] = "evil\x1b[2J";
  EXPECT_THAT(run("profile --duration 0.2 --interval 0.05").text, ::testing::Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace tidemark::testing
