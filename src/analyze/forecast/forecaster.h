// Whether a memory runs out, and when: from how much of it was used over time.
//
// A memory is a GPU's, a process's, or a control group's. What is forecast is the running peak: training programs go up
// and down within a step, and they die at the top. Growth that ends below the limit is no risk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "analyze/forecast/usage_history.h"
#include "base/enum_names.h"

namespace tidemark {

enum class RiskLevel : std::uint8_t {
  low = 0,       ///< no growth that would reach the limit
  medium = 1,    ///< above the threshold, or growth to the limit within the horizon that is too young for an alarm
  high = 2,      ///< growth reaches the limit within the horizon
  critical = 3,  ///< about to reach the limit
};
inline constexpr EnumName<RiskLevel> kRiskLevelNames[] = {{RiskLevel::low, "low"},
                                                          {RiskLevel::medium, "medium"},
                                                          {RiskLevel::high, "high"},
                                                          {RiskLevel::critical, "critical"}};
[[nodiscard]] constexpr std::string_view name_of(RiskLevel level) {
  return name_in(kRiskLevelNames, level);
}

/// What the use of memory looks like since the latest change of it.
enum class UsagePattern : std::uint8_t {
  unknown = 0,   ///< too few samples
  steady = 1,    ///< no growth
  warm_up = 2,   ///< it grew, and each peak adds less than the one before
  sawtooth = 3,  ///< it goes up and down, and its peaks do not grow
  level = 4,     ///< it changed once, and is steady since
  growth = 5,    ///< its peaks grow at a steady rate
  steps = 6,     ///< its peaks grow in steps
  released = 7,  ///< what had grown is free again, as after the end of a process
};
inline constexpr EnumName<UsagePattern> kUsagePatternNames[] = {
    {UsagePattern::unknown, "unknown"},   {UsagePattern::steady, "steady"},    {UsagePattern::warm_up, "warm_up"},
    {UsagePattern::sawtooth, "sawtooth"}, {UsagePattern::level, "level"},      {UsagePattern::growth, "growth"},
    {UsagePattern::steps, "steps"},       {UsagePattern::released, "released"}};
[[nodiscard]] constexpr std::string_view name_of(UsagePattern pattern) {
  return name_in(kUsagePatternNames, pattern);
}

/// An estimate with its 90% interval. `latest` is none where the growth may also end before the limit.
struct Interval {
  double expected = 0;
  double earliest = 0;
  std::optional<double> latest;
};

struct RiskAssessment {
  RiskLevel level = RiskLevel::low;
  /// How often assessments of this level and evidence were right on labelled runs (bench/detectors), 0 to 1. None
  /// before there is enough to judge from.
  std::optional<double> confidence;
  UsagePattern pattern = UsagePattern::unknown;
  std::uint64_t used_bytes = 0;              ///< at the latest sample
  std::optional<double> used_percent;        ///< of the limit; none where no limit is known
  double growth_bytes_per_second = 0;        ///< of the running peak; 0 where it does not grow
  double growth_error_bytes_per_second = 0;  ///< half of the 90% interval of that
  double growth_seconds = 0;                 ///< for how long it has grown, perhaps at other rates; 0 where it does not
  std::optional<Interval> seconds_to_limit;  ///< from the latest sample; none where it will not be reached
  std::optional<Interval> steps_to_limit;    ///< likewise; none also where steps are not known
  // The evidence.
  std::uint64_t sample_count = 0;        ///< since the latest change
  double span_seconds = 0;               ///< of those
  std::uint32_t change_points = 0;       ///< that were found before
  std::optional<double> period_seconds;  ///< of what repeats; none where nothing does
};

struct ForecastOptions {
  double threshold_percent = 85;  ///< of the limit, from which on use alone is a medium risk
  double horizon_seconds = 600;   ///< what is to come within that time is a high risk
};

/// Takes samples of one memory, keeps a bounded number of them (older ones joined), and says what is to come.
/// One thread at a time. No call fails.
class Forecaster {
 public:
  explicit Forecaster(const ForecastOptions& options = {});
  ~Forecaster();
  Forecaster(Forecaster&&) noexcept;
  Forecaster& operator=(Forecaster&&) noexcept;

  void add(const UsageSample& sample);
  /// `limit_bytes` as it is now; none where there is none. Takes less than 1 ms after 10,000 samples.
  [[nodiscard]] RiskAssessment assess(std::optional<std::uint64_t> limit_bytes) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Whether it says that growth reaches the limit within the horizon. Of a low level never: growth that may be slowing
/// down is one.
[[nodiscard]] bool foresees_limit(const RiskAssessment& risk, const ForecastOptions& options);

/// Assessments of a level are sorted by what speaks for them; 0 to kEvidenceClasses - 1. The first half of the classes
/// is for those that do not foresee the limit: how long it was watched since the latest change, in horizons. The second
/// half is for those that do: how many times the time that is left it has grown already. In each half, the more the
/// better.
inline constexpr std::size_t kEvidenceClasses = 8;
[[nodiscard]] std::size_t evidence_class(const RiskAssessment& risk, const ForecastOptions& options);

/// The share of assessments of that level and class that were right on the training seeds of bench/detectors: those
/// that foresee the limit where it was reached within one and a half horizons after them, others where it was not
/// within one.
[[nodiscard]] double calibrated_confidence(const RiskAssessment& risk, const ForecastOptions& options);

}  // namespace tidemark
