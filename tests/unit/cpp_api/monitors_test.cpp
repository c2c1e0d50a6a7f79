#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tidemark/monitors.h>

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "temporary_folder.h"

namespace {

using Json = nlohmann::json;
using tidemark::testing::TemporaryFolder;

tidemark::MonitorSettings host_only() {
  tidemark::MonitorSettings settings;
  settings.interval_seconds = 0.02;
  settings.devices = {"cpu"};
  return settings;
}

TEST(Monitors, ReportAsTheCommandsDo) {
  const TemporaryFolder folder;
  tidemark::MemoryProfiler profiler(host_only());
  tidemark::FragmentationAnalyzer analyzer(host_only());
  tidemark::MemoryLeakDetector detector(host_only(), 5, true);
  EXPECT_THROW(profiler.generate_report(), tidemark::Error);
  profiler.start_monitoring();
  analyzer.start_monitoring();
  detector.start_monitoring();
  EXPECT_TRUE(profiler.is_monitoring());
  const std::string report = profiler.generate_report(folder.at("profile.json"));
  std::ifstream file(folder.at("profile.json"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), report);
  const Json profile = Json::parse(report);
  EXPECT_EQ(profile["command"], "profile");
  EXPECT_GT(profile["devices"]["cpu"]["current_memory"]["total"].get<std::uint64_t>(), 0U);
  EXPECT_EQ(Json::parse(analyzer.generate_report())["command"], "fragment");
  const Json leak = Json::parse(detector.generate_report());
  EXPECT_EQ(leak["threshold_mb_per_minute"], 5.0);
  EXPECT_EQ(leak["tracking"]["enabled"], true);
  profiler.stop_monitoring();
  EXPECT_FALSE(profiler.is_monitoring());
  EXPECT_THROW(profiler.generate_report(folder.at("no/folder.json")), tidemark::Error);
}

TEST(Monitors, WarningCallbacksMayThrow) {
  std::mutex mutex;
  std::condition_variable changed;
  std::string device;
  tidemark::RiskPrediction told;
  tidemark::OomDetector detector(host_only(), 0.001);  // any use is above it
  detector.add_warning_callback(
      [](const std::string&, const tidemark::RiskPrediction&) { throw std::runtime_error("a fault of the callback"); });
  detector.add_warning_callback([&](const std::string& of, const tidemark::RiskPrediction& prediction) {
    const std::lock_guard<std::mutex> lock(mutex);
    device = of;
    told = prediction;
    changed.notify_all();
  });
  detector.start_monitoring();
  std::unique_lock<std::mutex> lock(mutex);
  ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return !device.empty(); }));
  EXPECT_EQ(device, "cpu");
  EXPECT_STREQ(name_of(told.risk_level), "medium");
  EXPECT_GT(told.current_usage_percent.value_or(0), 0);
  EXPECT_FALSE(told.recommendation.empty());
  lock.unlock();
  const Json report = Json::parse(detector.generate_report());
  EXPECT_EQ(report["devices"]["cpu"]["risk_assessment"]["risk_level"], "medium");
}

TEST(Monitors, RejectInvalidSettings) {
  tidemark::MonitorSettings settings;
  settings.interval_seconds = 0;
  EXPECT_THROW(tidemark::MemoryProfiler{settings}, tidemark::Error);
  settings.interval_seconds = 1e300;
  EXPECT_THROW(tidemark::MemoryProfiler{settings}, tidemark::Error);
  EXPECT_THROW(tidemark::OomDetector({}, 0), tidemark::Error);
  EXPECT_THROW(tidemark::MemoryLeakDetector({}, -1), tidemark::Error);
}

}  // namespace
