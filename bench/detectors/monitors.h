// What is measured: ours, and the two simple methods that everyone uses.
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
  std::optional<double> seconds;             ///< to the limit, where it says
  std::optional<RiskAssessment> assessment;  ///< ours
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
/// The line through the last ten samples (least squares): an alarm where it reaches the limit within the horizon of
/// ours, a leak where it grows by 10 MB a minute.
[[nodiscard]] std::unique_ptr<Monitor> slope_monitor();
/// An alarm at 85% of the limit. It knows no leaks.
[[nodiscard]] std::unique_ptr<Monitor> threshold_monitor();

}  // namespace tidemark::detectors
