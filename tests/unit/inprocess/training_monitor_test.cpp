#include "inprocess/performance/training_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "publish/metrics/families.h"
#include "publish/metrics/prometheus.h"
#include "query/results/machine_results.h"
#include "report/chart/chart.h"
#include "temporary_folder.h"

namespace tidemark {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using ::testing::HasSubstr;

Json report_json(TrainingMonitor& monitor) {
  return Json::parse(to_json(monitor.report()));
}

TEST(TrainingMonitor, ReportsMetricsByName) {
  TrainingMonitor monitor({});
  for (const double value : {2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0}) EXPECT_TRUE(monitor.log("loss", value));
  EXPECT_TRUE(monitor.log("lr", 1e-4));
  EXPECT_TRUE(monitor.log("lr", std::nan("")));
  const Json report = report_json(monitor);
  const Json& loss = report["training_metrics"]["loss"];
  EXPECT_EQ(loss["mean"], 5.0);
  EXPECT_EQ(loss["std"], 2.0);
  EXPECT_EQ(loss["min"], 2.0);
  EXPECT_EQ(loss["max"], 9.0);
  EXPECT_EQ(loss["count"], 8);
  EXPECT_EQ(loss["last"], 9.0);
  EXPECT_NEAR(loss["p50"].get<double>(), 4, 0.04);
  EXPECT_EQ(report["training_metrics"]["lr"]["nan_count"], 1);
  EXPECT_EQ(report["training_metrics"]["lr"]["last"], nullptr);
  EXPECT_EQ(report["monitoring"], false);
  // The machine was not watched: unknown, not 0.
  EXPECT_EQ(report["system_metrics"]["cpu_usage"], nullptr);
  EXPECT_TRUE(report["gpu_metrics"].empty());
}

TEST(TrainingMonitor, WatchesTheHost) {
  TrainingMonitorOptions options;
  options.interval = 60ms;
  TrainingMonitor monitor(options);
  monitor.start();
  EXPECT_TRUE(monitor.watching());
  const Json system = report_json(monitor)["system_metrics"];
  monitor.stop();
  EXPECT_FALSE(monitor.watching());
  for (const char* key : {"cpu_usage", "memory_usage", "disk_usage"}) {
    ASSERT_TRUE(system[key].is_number()) << key;
    EXPECT_GE(system[key].get<double>(), 0) << key;
    EXPECT_LE(system[key].get<double>(), 100) << key;
  }
  EXPECT_GT(system["process"]["rss_bytes"].get<std::uint64_t>(), 1U << 20);
  EXPECT_EQ(system["process"]["pid"], ::getpid());
  EXPECT_GT(system["memory"]["total_bytes"].get<std::uint64_t>(), 1U << 20);
  EXPECT_EQ(system["processors"], std::thread::hardware_concurrency());
}

TEST(TrainingMonitor, WatchesDevices) {
  const testing::TemporaryFolder folder;
  ::setenv("FAKES_NVML",
           folder
               .write("nvml.json", R"({"devices": [{"name": "NVIDIA H100", "uuid": "GPU-1", "bus": 101,
      "memory": {"total": 80000, "reserved": 1000, "used": 20000}, "utilization": 37, "temperature": 41, "power": 71500,
      "processes": [{"pid": "caller", "bytes": 5000}]}]})")
               .c_str(),
           1);
  TrainingMonitorOptions options;
  options.interval = 20ms;
  options.places.nvml = FAKES_NVML_NEW;
  TrainingMonitor monitor(options);
  monitor.start();
  Json device;
  // Process lists come after the first sample.
  for (int tries = 0; tries < 500 && (device.is_null() || device["process_memory_bytes"].is_null()); ++tries) {
    std::this_thread::sleep_for(10ms);
    device = report_json(monitor)["gpu_metrics"]["0"];
  }
  EXPECT_EQ(device["name"], "NVIDIA H100");
  EXPECT_EQ(device["memory_total_bytes"], 80000);
  EXPECT_EQ(device["memory_used_bytes"], 20000);
  EXPECT_EQ(device["memory_usage"], 25.0);
  EXPECT_EQ(device["utilization"], 37);
  EXPECT_EQ(device["process_memory_bytes"], 5000);
  EXPECT_EQ(device["utilization_percent"]["avg"], 37.0);
  const std::string page = prometheus_text(to_metrics(monitor.report(), "1.2.3"));
  EXPECT_THAT(page, HasSubstr("hw_gpu_memory_usage_bytes{"));
}

TEST(TrainingMonitor, ValuesLoggedAfterStopAreCounted) {
  TrainingMonitor monitor({});
  EXPECT_TRUE(monitor.log("loss", 1));
  NamedMetric* const loss = monitor.metric("loss");
  monitor.stop();
  EXPECT_FALSE(monitor.log("loss", 2));
  EXPECT_FALSE(monitor.log(loss, 3));
  EXPECT_FALSE(monitor.step(1));
  EXPECT_EQ(report_json(monitor)["training_metrics"]["loss"]["count"], 1);
  EXPECT_EQ(report_json(monitor)["values_after_stop"], 3);
  monitor.start();
  EXPECT_TRUE(monitor.log("loss", 2));
  EXPECT_EQ(report_json(monitor)["training_metrics"]["loss"]["count"], 2);
}

TEST(TrainingMonitor, ValuesOfNamesBeyondTheBoundAreCounted) {
  TrainingMonitor monitor({});
  for (std::size_t n = 0; n < MetricTable::kMaxNames + 5; ++n) EXPECT_TRUE(monitor.log(std::to_string(n), 1));
  EXPECT_TRUE(monitor.log("7", 1));
  const PerformanceReport report = monitor.report();
  EXPECT_EQ(report.metrics.size(), MetricTable::kMaxNames);
  EXPECT_EQ(report.unnamed_values, 5U);
}

// Threads of the parent log, and its monitor's thread reads, while it forks.
TEST(TrainingMonitor, ForkedChildrenKeepOldDataAndAddNone) {
  TrainingMonitorOptions options;
  options.interval = 10ms;
  TrainingMonitor monitor(options);
  monitor.start();
  EXPECT_TRUE(monitor.log("epoch", 3));
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int n = 0; n < 3; ++n) {
    threads.emplace_back([&] {
      while (!done) monitor.log("loss", 1);
    });
  }
  for (int n = 0; n < 10; ++n) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(30);
      bool right = !monitor.log("epoch", 4) && !monitor.watching();
      const PerformanceReport report = monitor.report();
      right = right && report.metrics.front().values.moments.count == 1;
      monitor.start();
      right = right && !monitor.log("epoch", 4);
      monitor.~TrainingMonitor();
      ::_exit(right ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(TrainingMonitor, StepsGoIntoTheReport) {
  TrainingMonitor monitor({});
  for (int n = 0; n < 3; ++n) {
    const std::int64_t began = StepTimes::now_ns();
    monitor.part_began(began);
    EXPECT_TRUE(monitor.part_ended(StepPart::data, began));
    EXPECT_TRUE(monitor.step(16));
  }
  const Json steps = report_json(monitor)["steps"];
  EXPECT_EQ(steps["steps"], 3);
  EXPECT_EQ(steps["samples"], 48);
  EXPECT_EQ(steps["step_seconds"]["count"], 3);
  EXPECT_EQ(steps["breakdown"]["data"]["count"], 3);
  EXPECT_EQ(steps["breakdown"]["forward"]["mean"], nullptr);
  const double mean = steps["step_seconds"]["mean"];
  EXPECT_NEAR(steps["steps_per_second"].get<double>() * mean, 1, 1e-9);
  EXPECT_NEAR(steps["samples_per_second"].get<double>() * mean, 16, 1e-6);
}

TEST(TrainingMonitor, IsAPageForPrometheus) {
  TrainingMonitor monitor({});
  monitor.log("loss \"a\"\n", 0.5);
  monitor.step(4);
  const std::string page = prometheus_text(to_metrics(monitor.report(), "1.2.3"));
  EXPECT_THAT(page, HasSubstr("# TYPE tidemark_training_metric gauge\n"));
  EXPECT_THAT(
      page,
      HasSubstr("tidemark_training_metric{tidemark_metric=\"loss \\\"a\\\"\\n\",tidemark_statistic=\"mean\"} 0.5\n"));
  EXPECT_THAT(page, HasSubstr("tidemark_training_steps_total 1\n"));
  EXPECT_THAT(page, HasSubstr("tidemark_training_samples_total 4\n"));
}

TEST(TrainingMonitor, IsDrawn) {
  TrainingMonitorOptions options;
  options.interval = 10ms;
  TrainingMonitor monitor(options);
  monitor.start();
  for (int n = 0; n < 20; ++n) {
    monitor.log("loss", 1.0 / (n + 1));
    std::this_thread::sleep_for(5ms);
  }
  const auto svg = draw_performance(monitor.report(), ChartFormat::svg);
  ASSERT_TRUE(svg);
  EXPECT_THAT(*svg, HasSubstr("<svg"));
  const auto nothing = draw_performance(PerformanceReport(), ChartFormat::png);
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->substr(1, 3), "PNG");
}

}  // namespace
}  // namespace tidemark
