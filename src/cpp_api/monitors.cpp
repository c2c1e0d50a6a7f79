#include <fmt/format.h>
#include <tidemark/monitors.h>

#include <cmath>
#include <exception>
#include <utility>

#include "base/output_file.h"
#include "base/standard_streams.h"
#include "base/units.h"
#include "cpp_api/results.h"
#include "inprocess/background_watch.h"
#include "monitor/on_risk.h"
#include "report/monitor/json.h"
#include "report/monitor/risk.h"

namespace tidemark {
TIDEMARK_INLINE
namespace v1 {
namespace {

// As `tidemark leak` and `fragment` keep by default.
constexpr std::chrono::nanoseconds kKeptWindow = std::chrono::minutes(10);

BackgroundWatchOptions watch_options(const MonitorSettings& settings, double threshold_percent, bool follow,
                                     bool keeps_events) {
  BackgroundWatchOptions options;
  const double seconds = settings.interval_seconds;
  // What no duration holds becomes one that is refused.
  const bool fits = seconds >= 0 && seconds <= 1e9;
  options.monitor.interval = std::chrono::nanoseconds(fits ? std::llround(seconds * 1e9) : 0);
  options.monitor.choice.devices = settings.devices;
  options.monitor.choice.pid = settings.pid;
  options.monitor.forecast.threshold_percent = threshold_percent;
  options.follow = follow;
  if (keeps_events) options.window = SlidingWindow::Limits{kKeptWindow};
  check(check_watch(options.monitor));
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
  Parts(BackgroundWatchOptions options, Write to_report) : watch(std::move(options)), write(std::move(to_report)) {}

  BackgroundWatch watch;
  std::function<Result<std::string>(BackgroundWatch&)> write;
};

Monitor::Monitor(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Monitor::~Monitor() = default;

void Monitor::start_monitoring() {
  parts_->watch.start();
}

void Monitor::stop_monitoring() {
  parts_->watch.stop();
}

bool Monitor::is_monitoring() const {
  return parts_->watch.watching();
}

std::string Monitor::generate_report(const std::string& path) {
  std::string report = value_or_throw(parts_->write(parts_->watch));
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
    : Monitor(std::make_unique<Parts>(watch_options(settings, 85, true, false),
                                      [](BackgroundWatch& watch) { return as_json(watch.profile()); })) {}

OomDetector::OomDetector(const MonitorSettings& settings, double threshold_percent)
    : Monitor(std::make_unique<Parts>(watch_options(settings, threshold_percent, false, false),
                                      [](BackgroundWatch& watch) { return as_json(watch.oom()); })) {}

void OomDetector::add_warning_callback(WarningCallback callback) {
  parts_->watch.add_listener(
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
    : Monitor(std::make_unique<Parts>(watch_options(settings, 85, true, true),
                                      [](BackgroundWatch& watch) { return as_json(watch.fragment()); })) {}

MemoryLeakDetector::MemoryLeakDetector(const MonitorSettings& settings, double threshold_mb_per_minute, bool tracking)
    : Monitor(std::make_unique<Parts>(
          watch_options(settings, 85, true, tracking), [threshold_mb_per_minute, tracking](BackgroundWatch& watch) {
            return as_json(watch.leak(threshold_mb_per_minute * static_cast<double>(kMiB), tracking));
          })) {
  if (!(threshold_mb_per_minute >= 0)) {
    throw v1::Error(fmt::format("a threshold of {}: it is in MB per minute, 0 or more", threshold_mb_per_minute));
  }
}

}  // namespace v1
}  // namespace tidemark
