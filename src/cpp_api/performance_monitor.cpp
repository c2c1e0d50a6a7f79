#include <fmt/format.h>
#include <tidemark/performance_monitor.h>

#include <atomic>
#include <utility>

#include "base/standard_streams.h"
#include "cpp_api/results.h"
#include "inprocess/performance/training_monitor.h"
#include "monitor/engine.h"
#include "publish/metrics/families.h"
#include "publish/metrics/prometheus.h"
#include "query/results/machine_results.h"
#include "report/chart/chart.h"

namespace tidemark {
TIDEMARK_INLINE
namespace v1 {
namespace {

TrainingMonitorOptions monitor_options(const PerformanceSettings& settings) {
  TrainingMonitorOptions options;
  options.interval = value_or_throw(sampling_interval(settings.interval_seconds, OptionNames().interval));
  options.choice.devices = settings.devices;
  options.disk = settings.disk;
  return options;
}

MetricSummary summary_of(const std::string& name, const ValueSummary& values) {
  const RunningMoments& moments = values.moments;
  MetricSummary summary;
  summary.name = name;
  summary.count = moments.count;
  if (moments.count > 0) {
    summary.mean = moments.mean;
    summary.std = moments.deviation();
    summary.min = moments.lowest;
    summary.max = moments.highest;
  }
  summary.p50 = values.p50;
  summary.p90 = values.p90;
  summary.p99 = values.p99;
  summary.nan_count = values.nan_count;
  summary.infinite_count = values.infinite_count;
  return summary;
}

}  // namespace

struct PerformanceMonitor::Parts {
  explicit Parts(const PerformanceSettings& settings) : monitor(monitor_options(settings)) {}

  /// Prints once that the monitor has stopped if a value is not kept.
  static void tell(void* parts, bool kept) noexcept {
    auto& own = *static_cast<Parts*>(parts);
    if (kept || own.told.exchange(true)) return;
    say("PerformanceMonitor: what is logged after stop_monitoring(), or in a forked process, is not kept");
  }

  TrainingMonitor monitor;
  std::atomic<bool> told = false;
};

void Metric::log(double value) noexcept {
  auto& parts = *static_cast<PerformanceMonitor::Parts*>(monitor_);
  if (!parts.monitor.log(static_cast<NamedMetric*>(metric_), value)) PerformanceMonitor::Parts::tell(monitor_, false);
}

// Values that are not a phase are not measured.
PhaseScope::PhaseScope(void* monitor, StepPhase phase) noexcept
    : monitor_(phase <= StepPhase::optimizer ? monitor : nullptr), phase_(phase), began_ns_(StepTimes::now_ns()) {
  if (monitor_ != nullptr) static_cast<PerformanceMonitor::Parts*>(monitor_)->monitor.part_began(began_ns_);
}

PhaseScope::PhaseScope(PhaseScope&& other) noexcept
    : monitor_(std::exchange(other.monitor_, nullptr)), phase_(other.phase_), began_ns_(other.began_ns_) {}

PhaseScope::~PhaseScope() {
  if (monitor_ == nullptr) return;
  auto& parts = *static_cast<PerformanceMonitor::Parts*>(monitor_);
  PerformanceMonitor::Parts::tell(monitor_, parts.monitor.part_ended(static_cast<StepPart>(phase_), began_ns_));
}

PerformanceMonitor::PerformanceMonitor(const PerformanceSettings& settings)
    : parts_(std::make_unique<Parts>(settings)) {}

PerformanceMonitor::~PerformanceMonitor() = default;

void PerformanceMonitor::start_monitoring() {
  parts_->monitor.start();
}

void PerformanceMonitor::stop_monitoring() {
  parts_->monitor.stop();
}

bool PerformanceMonitor::is_monitoring() const {
  return parts_->monitor.watching();
}

void PerformanceMonitor::log_metric(std::string_view name, double value) noexcept {
  if (!parts_->monitor.log(name, value)) Parts::tell(parts_.get(), false);
}

Metric PerformanceMonitor::metric(std::string_view name) {
  return {parts_.get(), parts_->monitor.metric(name)};
}

void PerformanceMonitor::step(std::uint64_t samples) noexcept {
  if (!parts_->monitor.step(samples)) Parts::tell(parts_.get(), false);
}

PhaseScope PerformanceMonitor::phase(StepPhase phase) noexcept {
  return {parts_.get(), phase};
}

std::vector<MetricSummary> PerformanceMonitor::metrics() const {
  std::vector<MetricSummary> all;
  for (const auto& [name, values] : parts_->monitor.metrics()) all.push_back(summary_of(name, values));
  return all;
}

std::string PerformanceMonitor::get_performance_report() const {
  return to_json(parts_->monitor.report());
}

std::string PerformanceMonitor::prometheus() const {
  return prometheus_text(to_metrics(parts_->monitor.report(), TIDEMARK_VERSION));
}

void PerformanceMonitor::save_chart(const std::string& path) const {
  const ChartFormat format = path.ends_with(".svg") ? ChartFormat::svg : ChartFormat::png;
  check(write_picture(path, draw_performance(parts_->monitor.report(), format)));
}

}  // namespace v1
}  // namespace tidemark
