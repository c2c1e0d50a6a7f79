// How often assessments were right on the labelled runs of bench/detectors.
#pragma once

#include <cstddef>
#include <optional>

#include "analyze/forecast/forecaster.h"

namespace tidemark {

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
