// Predicts whether and when a memory runs out, from its usage over time.
//
// A memory is a GPU's, a process's, or a control group's. The forecast extrapolates the running peak: the usage of
// training programs rises and falls within a step, and they fail at its top. Growth that ends below the limit is no
// risk.
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

/// Shape of the memory usage since its latest change.
enum class UsagePattern : std::uint8_t {
  unknown = 0,   ///< too few samples
  steady = 1,    ///< no growth
  warm_up = 2,   ///< it grew, and each peak adds less than the one before
  sawtooth = 3,  ///< rises and falls, without growth of its peaks
  level = 4,     ///< it changed once, and is steady since
  growth = 5,    ///< its peaks grow at a steady rate
  steps = 6,     ///< its peaks grow in steps
  released = 7,  ///< grown memory was freed, as after the end of a process
};
inline constexpr EnumName<UsagePattern> kUsagePatternNames[] = {
    {UsagePattern::unknown, "unknown"},   {UsagePattern::steady, "steady"},    {UsagePattern::warm_up, "warm_up"},
    {UsagePattern::sawtooth, "sawtooth"}, {UsagePattern::level, "level"},      {UsagePattern::growth, "growth"},
    {UsagePattern::steps, "steps"},       {UsagePattern::released, "released"}};
[[nodiscard]] constexpr std::string_view name_of(UsagePattern pattern) {
  return name_in(kUsagePatternNames, pattern);
}

/// An estimate with its 90% interval. `latest` is nullopt if the growth may also end before the limit.
struct Interval {
  double expected = 0;
  double earliest = 0;
  std::optional<double> latest;
};

struct RiskAssessment {
  RiskLevel level = RiskLevel::low;
  /// Share of assessments of this level and evidence that were right on labelled runs (bench/detectors), 0 to 1.
  /// nullopt until there is enough data.
  std::optional<double> confidence;
  UsagePattern pattern = UsagePattern::unknown;
  std::uint64_t used_bytes = 0;              ///< at the latest sample
  std::optional<double> used_percent;        ///< of the limit; nullopt if the limit is unknown
  double growth_bytes_per_second = 0;        ///< of the running peak; 0 if it does not grow
  double growth_error_bytes_per_second = 0;  ///< half of the 90% interval of that
  double growth_seconds = 0;                 ///< duration of the growth, perhaps at several rates; 0 without growth
  std::optional<Interval> seconds_to_limit;  ///< from the latest sample; nullopt if it will not be reached
  std::optional<Interval> steps_to_limit;    ///< training steps to the limit; nullopt also if steps are unknown
  // The evidence.
  std::uint64_t sample_count = 0;        ///< since the latest change
  double span_seconds = 0;               ///< time between the first and last of these samples
  std::uint32_t change_points = 0;       ///< number of changes found
  std::optional<double> period_seconds;  ///< nullopt if nothing repeats
};

struct ForecastOptions {
  double threshold_percent = 85;  ///< of the limit; usage above it is at least a medium risk
  double horizon_seconds = 600;   ///< reaching the limit within this time is a high risk
};

/// Takes samples of one memory, keeps a bounded number of them (older ones are merged), and predicts its usage. Not
/// thread-safe. No call fails.
class Forecaster {
 public:
  explicit Forecaster(const ForecastOptions& options = {});
  ~Forecaster();
  Forecaster(Forecaster&&) noexcept;
  Forecaster& operator=(Forecaster&&) noexcept;

  void add(const UsageSample& sample);
  /// `limit_bytes` is the current limit; nullopt if there is none. Takes less than 1 ms after 10,000 samples.
  [[nodiscard]] RiskAssessment assess(std::optional<std::uint64_t> limit_bytes) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Whether the assessment predicts that growth reaches the limit within the horizon. Always false for a low level,
/// which may be growth that is slowing down.
[[nodiscard]] bool foresees_limit(const RiskAssessment& risk, const ForecastOptions& options);

/// Assessments of one level are classified by their evidence; 0 to kEvidenceClasses - 1. The first half of the classes
/// does not foresee the limit; its evidence is the time watched since the latest change, in horizons. The second half
/// foresees it; its evidence is the duration of the growth divided by the time left. In each half, higher classes have
/// more evidence.
inline constexpr std::size_t kEvidenceClasses = 8;
[[nodiscard]] std::size_t evidence_class(const RiskAssessment& risk, const ForecastOptions& options);

/// The share of assessments of that level and class that were right on the training seeds of bench/detectors. An
/// assessment that foresees the limit is right if it was reached within one and a half horizons, any other if it was
/// not reached within one.
[[nodiscard]] double calibrated_confidence(const RiskAssessment& risk, const ForecastOptions& options);

}  // namespace tidemark
