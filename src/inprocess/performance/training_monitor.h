// The performance monitor: values, steps and the machine, from inside a program that trains.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inprocess/performance/metric_table.h"
#include "inprocess/performance/performance_report.h"
#include "inprocess/performance/step_times.h"
#include "monitor/engine.h"

namespace tidemark {

struct TrainingMonitorOptions {
  std::chrono::nanoseconds interval = std::chrono::seconds(1);
  WatchedChoice choice = {};  ///< devices to watch
  std::string disk = "/";     ///< a path on the disk to watch
  SourcePlaces places = {};
};

/// Thread-safe. Values are taken from construction until stop(), and from the next start() on. In a forked child it is
/// stopped permanently, with the data collected until then.
class TrainingMonitor {
 public:
  explicit TrainingMonitor(TrainingMonitorOptions options);
  /// Calls stop().
  ~TrainingMonitor();
  TrainingMonitor(const TrainingMonitor&) = delete;
  TrainingMonitor& operator=(const TrainingMonitor&) = delete;

  /// Watches the machine, on a thread of its own. No effect if it does already.
  void start();
  void stop();
  [[nodiscard]] bool watching() const;

  // The following functions return false if the value is not kept, because the monitor has stopped; they never wait.
  bool log(std::string_view name, double value) noexcept;
  /// Null if there are too many names. Valid as long as the monitor.
  NamedMetric* metric(std::string_view name) noexcept { return metrics_.find(name); }
  /// `metric` may be null.
  bool log(NamedMetric* metric, double value) noexcept;
  bool step(std::uint64_t samples) noexcept;
  void part_began(std::int64_t now_ns) noexcept { steps_.part_began(now_ns); }
  bool part_ended(StepPart part, std::int64_t began_ns) noexcept;

  /// Waits for the machine's first readings, at most two seconds.
  [[nodiscard]] PerformanceReport report();
  /// Without the machine and without waiting.
  [[nodiscard]] std::vector<std::pair<std::string, ValueSummary>> metrics() const;

 private:
  struct Background;
  void run();
  void sample_machine();
  void sample();
  void add_histories();
  void add_percent(WatchedPercent& watched, const std::optional<double>& percent, std::uint64_t begin_ns) const;
  [[nodiscard]] std::uint64_t age_ns() const;
  [[nodiscard]] bool forked() const noexcept;
  [[nodiscard]] bool taking() noexcept;

  const TrainingMonitorOptions options_;
  const std::chrono::steady_clock::time_point began_;
  const std::uint64_t began_wall_ns_;
  const std::uint64_t forks_;  // forks before this process
  std::atomic<bool> taking_ = true;
  std::atomic<std::uint64_t> unnamed_ = 0;
  std::atomic<std::uint64_t> late_ = 0;
  MetricTable metrics_;
  StepTimes steps_;
  std::mutex control_;                      // guards starting and stopping
  std::unique_ptr<Background> background_;  // data of the thread
};

}  // namespace tidemark
