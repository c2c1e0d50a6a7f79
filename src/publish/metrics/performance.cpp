#include "publish/metrics/performance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "publish/metrics/families.h"

namespace tidemark {
namespace {

enum PerformanceFamily : std::size_t {
  kTrainingMetric,
  kTrainingMetricCount,
  kTrainingMetricInvalid,
  kTrainingSteps,
  kTrainingSamples,
  kStepDuration,
  kPartTime,
  kStalledSteps,
  kCpuUtilization,
  kDiskUtilization,
  kOwnMemory,
};
constexpr std::array<MetricFamily, kOwnMemory + 1> kPerformanceFamilies = {{
    {"tidemark.training.metric", "", Instrument::gauge,
     "A metric that the program logs: last, mean, min, max, std, p50, p90 or p99 of its finite values."},
    {"tidemark.training.metric.values", "{value}", Instrument::counter, "Finite values of a metric."},
    {"tidemark.training.metric.invalid", "{value}", Instrument::counter,
     "Values of a metric that were NaN or infinite."},
    {"tidemark.training.steps", "{step}", Instrument::counter, "Steps of the training loop."},
    {"tidemark.training.samples", "{sample}", Instrument::counter, "Samples in these steps."},
    {"tidemark.training.step.duration", "s", Instrument::gauge, "Duration of a step: mean, min, max, p50, p90 or p99."},
    {"tidemark.training.part.time", "s", Instrument::counter,
     "Time in a part of the steps: data (waiting for it), forward, backward or optimizer."},
    {"tidemark.training.stalled_steps", "{step}", Instrument::counter,
     "Steps that waited for data for more than a tenth of their time."},
    {"system.cpu.utilization", "1", Instrument::gauge, "Share of the time in which the processors worked, 0 to 1."},
    {"system.filesystem.utilization", "1", Instrument::gauge, "Share of a file system that is used, 0 to 1."},
    {"tidemark.training.process.memory.usage", "By", Instrument::up_down_counter,
     "Resident host memory of the training process (RSS)."},
}};

class PerformanceBuilder {
 public:
  explicit PerformanceBuilder(MetricSet& set) : set_(set), first_(set.metrics.size()) {
    for (const MetricFamily& family : kPerformanceFamilies) set.metrics.push_back({&family, {}});
  }

  void add(PerformanceFamily family, MetricAttributes attributes, MetricValue value) {
    set_.metrics[first_ + family].points.push_back({std::move(attributes), value});
  }
  void add_count(PerformanceFamily family, MetricAttributes attributes, std::uint64_t count) {
    add(family, std::move(attributes), static_cast<std::int64_t>(count));
  }

  /// A point for each statistic that is known.
  void add_statistics(PerformanceFamily family, const MetricAttributes& attributes, const ValueSummary& values,
                      bool with_last) {
    const RunningMoments& moments = values.moments;
    const bool any = moments.count > 0;
    const std::pair<const char*, std::optional<double>> statistics[] = {
        {"last", with_last ? values.last : std::nullopt},
        {"mean", any ? std::optional(moments.mean) : std::nullopt},
        {"min", any ? std::optional(moments.lowest) : std::nullopt},
        {"max", any ? std::optional(moments.highest) : std::nullopt},
        {"std", moments.deviation()},
        {"p50", values.p50},
        {"p90", values.p90},
        {"p99", values.p99}};
    for (const auto& [name, value] : statistics) {
      if (!value) continue;
      MetricAttributes of_statistic = attributes;
      of_statistic.emplace_back("tidemark.statistic", name);
      add(family, std::move(of_statistic), *value);
    }
  }

 private:
  MetricSet& set_;
  std::size_t first_;
};

}  // namespace

std::span<const MetricFamily> performance_families() {
  return kPerformanceFamilies;
}

MetricSet to_metrics(const PerformanceReport& report, const std::string& version) {
  MetricSet set;
  if (report.machine) set = to_metrics(*report.machine, {}, {version});
  set.unix_ns = report.now_wall_ns;
  set.start_unix_ns = std::min(report.began_wall_ns, report.now_wall_ns);  // as for a machine's state
  PerformanceBuilder builder(set);
  for (const MetricReport& metric : report.metrics) {
    const MetricAttributes of_metric = {{"tidemark.metric", metric.name}};
    builder.add_statistics(kTrainingMetric, of_metric, metric.values, true);
    builder.add_count(kTrainingMetricCount, of_metric, metric.values.moments.count);
    builder.add_count(kTrainingMetricInvalid, of_metric, metric.values.nan_count + metric.values.infinite_count);
  }
  const StepSummary& steps = report.steps;
  builder.add_count(kTrainingSteps, {}, steps.steps);
  builder.add_count(kTrainingSamples, {}, steps.samples);
  builder.add_statistics(kStepDuration, {}, steps.step_seconds, false);
  for (std::size_t part = 0; part < kStepParts; ++part) {
    if (steps.parts[part].moments.count == 0) continue;
    builder.add(kPartTime, {{"tidemark.part", std::string(name_of(static_cast<StepPart>(part)))}},
                steps.parts[part].moments.sum());
  }
  if (steps.parts[static_cast<std::size_t>(StepPart::data)].moments.count > 0) {
    builder.add_count(kStalledSteps, {}, steps.stalled_steps);
  }
  const SystemReport& system = report.system;
  if (system.cpu.latest) builder.add(kCpuUtilization, {}, *system.cpu.latest / 100);
  if (system.disk_percent) {
    builder.add(kDiskUtilization, {{"system.filesystem.mountpoint", system.disk}}, *system.disk_percent / 100);
  }
  if (system.process.rss_bytes) {
    builder.add_count(kOwnMemory, {{"process.pid", std::to_string(report.pid)}}, *system.process.rss_bytes);
  }
  std::erase_if(set.metrics, [](const Metric& metric) { return metric.points.empty(); });
  return set;
}

}  // namespace tidemark
