#include "monitors.h"

#include <deque>

#include "analyze/forecast/growth_detector.h"

namespace tidemark::detectors {
namespace {

class OurMonitor : public Monitor {
 public:
  [[nodiscard]] std::string_view name() const override { return "Tidemark"; }
  void add(const UsageSample& sample) override {
    forecaster_.add(sample);
    growth_.add(sample);
  }
  [[nodiscard]] Verdict assess(std::uint64_t limit_bytes) const override {
    Verdict verdict;
    verdict.assessment = forecaster_.assess(limit_bytes);
    verdict.runs_out = verdict.assessment->level >= RiskLevel::high;
    if (verdict.assessment->seconds_to_limit) verdict.seconds = verdict.assessment->seconds_to_limit->expected;
    verdict.leaks = growth_.assess().leaks();
    return verdict;
  }

 private:
  Forecaster forecaster_;
  GrowthDetector growth_;
};

class SlopeMonitor : public Monitor {
 public:
  [[nodiscard]] std::string_view name() const override { return "slope of the last ten"; }
  void add(const UsageSample& sample) override {
    samples_.push_back(sample);
    if (samples_.size() > kSamples) samples_.pop_front();
  }
  [[nodiscard]] Verdict assess(std::uint64_t limit_bytes) const override {
    Verdict verdict;
    if (samples_.size() < kSamples) return verdict;
    double time = 0;
    double bytes = 0;
    for (const UsageSample& sample : samples_) {
      time += seconds_of(sample) / kSamples;
      bytes += static_cast<double>(sample.used_bytes) / kSamples;
    }
    double products = 0;
    double squares = 0;
    for (const UsageSample& sample : samples_) {
      const double from_mean = seconds_of(sample) - time;
      products += from_mean * (static_cast<double>(sample.used_bytes) - bytes);
      squares += from_mean * from_mean;
    }
    const double slope = squares > 0 ? products / squares : 0;
    if (slope <= 0) return verdict;
    verdict.seconds = (static_cast<double>(limit_bytes) - static_cast<double>(samples_.back().used_bytes)) / slope;
    verdict.runs_out = *verdict.seconds <= ForecastOptions{}.horizon_seconds;
    verdict.leaks = slope * 60 > kLeakPerMinute;
    return verdict;
  }

 private:
  static constexpr std::size_t kSamples = 10;
  static constexpr double kLeakPerMinute = 10.0 * (1 << 20);
  [[nodiscard]] double seconds_of(const UsageSample& sample) const {
    return static_cast<double>(sample.time_ns - samples_.front().time_ns) / kNanosecondsPerSecond;
  }
  std::deque<UsageSample> samples_;
};

class ThresholdMonitor : public Monitor {
 public:
  [[nodiscard]] std::string_view name() const override { return "fixed threshold 85%"; }
  void add(const UsageSample& sample) override { used_ = static_cast<double>(sample.used_bytes); }
  [[nodiscard]] Verdict assess(std::uint64_t limit_bytes) const override {
    Verdict verdict;
    verdict.runs_out = used_ >= 0.85 * static_cast<double>(limit_bytes);
    return verdict;
  }

 private:
  double used_ = 0;
};

}  // namespace

std::unique_ptr<Monitor> our_monitor() {
  return std::make_unique<OurMonitor>();
}
std::unique_ptr<Monitor> slope_monitor() {
  return std::make_unique<SlopeMonitor>();
}
std::unique_ptr<Monitor> threshold_monitor() {
  return std::make_unique<ThresholdMonitor>();
}

}  // namespace tidemark::detectors
