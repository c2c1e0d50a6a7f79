#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tidemark/performance_monitor.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "temporary_folder.h"

namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using tidemark::testing::TemporaryFolder;

TEST(PerformanceMonitor, MetricsByNameAndByHandle) {
  tidemark::PerformanceMonitor monitor;
  tidemark::Metric loss = monitor.metric("loss");
  for (int n = 1; n <= 100; ++n) loss.log(n);
  monitor.log_metric("loss", 101);
  monitor.log_metric("accuracy", 0.25);
  const auto metrics = monitor.metrics();
  ASSERT_EQ(metrics.size(), 2U);
  EXPECT_EQ(metrics[0].name, "loss");
  EXPECT_EQ(metrics[0].count, 101U);
  EXPECT_EQ(metrics[0].mean, 51.0);
  EXPECT_NEAR(metrics[0].std.value_or(0), 29.154759474226502, 1e-12);  // sqrt((101^2 - 1) / 12)
  EXPECT_NEAR(metrics[0].p90.value_or(0), 91, 0.91);
  EXPECT_EQ(metrics[1].max, 0.25);
  const Json report = Json::parse(monitor.get_performance_report());
  EXPECT_EQ(report["training_metrics"]["accuracy"]["mean"], 0.25);
}

TEST(PerformanceMonitor, StepsAndTheirParts) {
  const TemporaryFolder folder;
  tidemark::PerformanceMonitor monitor;
  monitor.start_monitoring();
  EXPECT_TRUE(monitor.is_monitoring());
  for (int n = 0; n < 4; ++n) {
    {
      auto waiting = monitor.waiting_for_data();
      const auto moved = std::move(waiting);  // measures once
    }
    { const auto forward = monitor.phase(tidemark::StepPhase::forward); }
    { const auto none = monitor.phase(static_cast<tidemark::StepPhase>(77)); }
    monitor.step(8);
  }
  monitor.save_chart(folder.at("chart.svg"));
  monitor.stop_monitoring();
  const Json steps = Json::parse(monitor.get_performance_report())["steps"];
  EXPECT_EQ(steps["steps"], 4);
  EXPECT_EQ(steps["samples"], 32);
  EXPECT_EQ(steps["breakdown"]["data"]["count"], 4);
  EXPECT_EQ(steps["breakdown"]["forward"]["count"], 4);
  EXPECT_EQ(steps["breakdown"]["backward"]["count"], 0);
  EXPECT_THAT(monitor.prometheus(), HasSubstr("tidemark_training_steps_total 4\n"));
  std::ifstream file(folder.at("chart.svg"));
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(file), {}), HasSubstr("<svg"));
  EXPECT_THROW(monitor.save_chart(folder.at("no/chart.png")), tidemark::Error);
}

TEST(PerformanceMonitor, UseAfterStopIsReportedOnce) {
  tidemark::PerformanceMonitor monitor;
  tidemark::Metric loss = monitor.metric("loss");
  monitor.stop_monitoring();
  ::testing::internal::CaptureStderr();
  loss.log(1);
  monitor.log_metric("loss", 2);
  monitor.step();
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, StartsWith("tidemark: PerformanceMonitor: what is logged after stop_monitoring()"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
  EXPECT_EQ(monitor.metrics().front().count, 0U);
}

TEST(PerformanceMonitor, RejectsInvalidSettings) {
  tidemark::PerformanceSettings settings;
  settings.interval_seconds = -1;
  EXPECT_THROW(tidemark::PerformanceMonitor{settings}, tidemark::Error);
}

}  // namespace
