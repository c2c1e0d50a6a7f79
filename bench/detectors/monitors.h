// The measured monitors: Tidemark's, and two simple methods in common use.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "analyze/forecast/forecaster.h"
#include "analyze/forecast/usage_history.h"

namespace tidemark::detectors {

struct Verdict {
  bool runs_out = false;                     ///< an alarm
  std::optional<double> seconds;             ///< to the limit, if predicted
  std::optional<RiskAssessment> assessment;  ///< Tidemark's only
  bool leaks = false;
};

class Monitor {
 public:
  virtual ~Monitor() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  virtual void add(const UsageSample& sample) = 0;
  [[nodiscard]] virtual Verdict assess(std::uint64_t limit_bytes) const = 0;
};

/// An alarm is a high or critical risk; a leak is one that the growth detector finds from the samples.
[[nodiscard]] std::unique_ptr<Monitor> our_monitor();
/// The line through the last ten samples (least squares): an alarm if it reaches the limit within Tidemark's horizon, a
/// leak if it grows by 10 MB a minute.
[[nodiscard]] std::unique_ptr<Monitor> slope_monitor();
/// An alarm at 85% of the limit. It does not detect leaks.
[[nodiscard]] std::unique_ptr<Monitor> threshold_monitor();

}  // namespace tidemark::detectors
