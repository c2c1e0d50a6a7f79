#include <fmt/format.h>
#include <tidemark/monitors.h>

#include <exception>
#include <functional>
#include <utility>

#include "base/output_file.h"
#include "base/standard_streams.h"
#include "base/units.h"
#include "cpp_api/results.h"
#include "monitor/engine.h"
#include "monitor/monitor_thread.h"
#include "monitor/risk_notifier.h"
#include "query/results/machine_results.h"
#include "query/words/risks.h"

namespace tidemark {
TIDEMARK_INLINE
namespace v1 {
namespace {

EngineOptions engine_options(const MonitorSettings& settings) {
  EngineOptions options;
  options.machine.interval = value_or_throw(sampling_interval(settings.interval_seconds, OptionNames().interval));
  options.machine.choice.devices = settings.devices;
  options.machine.choice.pid = settings.pid;
  return options;
}

EngineOptions oom_options(const MonitorSettings& settings, double threshold_percent) {
  EngineOptions options = engine_options(settings);
  options.machine.forecast.threshold_percent = threshold_percent;
  return options;
}

EngineOptions fragment_options(const MonitorSettings& settings) {
  EngineOptions options = engine_options(settings);
  options.window = kReportWindow;
  return options;
}

EngineOptions leak_options(const MonitorSettings& settings, double threshold_mb_per_minute, bool tracking) {
  EngineOptions options = engine_options(settings);
  options.leak_bytes_per_minute = threshold_mb_per_minute * static_cast<double>(kMiB);
  options.tracking = tracking;
  if (tracking) options.window = kReportWindow;
  return options;
}

RiskPrediction prediction_of(const RiskChange& change) {
  const RiskAssessment& risk = change.now;
  RiskPrediction prediction;
  prediction.risk_level = static_cast<RiskLevel>(risk.level);
  prediction.confidence = risk.confidence;
  prediction.current_usage_percent = risk.used_percent;
  if (risk.pattern != UsagePattern::unknown) {
    prediction.growth_rate_mb_per_sec = risk.growth_bytes_per_second / static_cast<double>(kMiB);
  }
  if (risk.seconds_to_limit) prediction.predicted_oom_time_seconds = risk.seconds_to_limit->expected;
  prediction.recommendation = recommendation_text(change);
  return prediction;
}

}  // namespace

static_assert(static_cast<int>(RiskLevel::critical) == static_cast<int>(tidemark::RiskLevel::critical));

const char* name_of(RiskLevel level) noexcept {
  switch (level) {
    case RiskLevel::low:
      return "low";
    case RiskLevel::medium:
      return "medium";
    case RiskLevel::high:
      return "high";
    case RiskLevel::critical:
      return "critical";
  }
  return "";
}

struct Monitor::Parts {
  template <typename Write>
  Parts(EngineOptions options, Write to_report) : monitor(checked(std::move(options))), write(std::move(to_report)) {}

  static EngineOptions checked(EngineOptions options) {
    check(tidemark::check(options));
    return options;
  }

  MonitorThread monitor;
  std::function<Result<std::string>(MonitorThread&)> write;
};

Monitor::Monitor(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Monitor::~Monitor() = default;

void Monitor::start_monitoring() {
  parts_->monitor.start();
}

void Monitor::stop_monitoring() {
  parts_->monitor.stop();
}

bool Monitor::is_monitoring() const {
  return parts_->monitor.watching();
}

std::string Monitor::generate_report(const std::string& path) {
  std::string report = value_or_throw(parts_->write(parts_->monitor));
  if (!path.empty()) check(write_file(path, report));
  return report;
}

namespace {

template <typename Report>
Result<std::string> as_json(const Result<Report>& report) {
  return report ? Result(to_json(*report)) : Result<std::string>(report.error());
}

}  // namespace

MemoryProfiler::MemoryProfiler(const MonitorSettings& settings)
    : Monitor(std::make_unique<Parts>(engine_options(settings),
                                      [](MonitorThread& monitor) { return as_json(monitor.profile()); })) {}

OomDetector::OomDetector(const MonitorSettings& settings, double threshold_percent)
    : Monitor(std::make_unique<Parts>(oom_options(settings, threshold_percent),
                                      [](MonitorThread& monitor) { return as_json(monitor.oom()); })) {}

void OomDetector::add_warning_callback(WarningCallback callback) {
  parts_->monitor.add_listener(
      on_risk(tidemark::RiskLevel::medium, [callback = std::move(callback)](const RiskChange& change) {
        try {
          callback(change.device, prediction_of(change));
        } catch (const std::exception& error) {
          say(fmt::format("a warning callback failed: {}", error.what()));
        } catch (...) {
          say("a warning callback failed");
        }
      }));
}

FragmentationAnalyzer::FragmentationAnalyzer(const MonitorSettings& settings)
    : Monitor(std::make_unique<Parts>(fragment_options(settings),
                                      [](MonitorThread& monitor) { return as_json(monitor.fragment()); })) {}

MemoryLeakDetector::MemoryLeakDetector(const MonitorSettings& settings, double threshold_mb_per_minute, bool tracking)
    : Monitor(std::make_unique<Parts>(leak_options(settings, threshold_mb_per_minute, tracking),
                                      [](MonitorThread& monitor) { return as_json(monitor.leak()); })) {}

}  // namespace v1
}  // namespace tidemark
