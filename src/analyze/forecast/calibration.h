// How often assessments were right on the labelled runs of bench/detectors.
#pragma once

#include <cstddef>
#include <optional>

#include "analyze/forecast/forecaster.h"

namespace tidemark {

/// How much speaks for an assessment: for growth to the limit, how often the time that it still takes has already been
/// grown; without growth, how long nothing grew, in horizons.
struct AssessmentEvidence {
  RiskLevel level = RiskLevel::low;
  double ratio = 0;
};

/// Assessments are sorted by their level and by this; 0 to kEvidenceClasses - 1, the more the better.
inline constexpr std::size_t kEvidenceClasses = 4;
[[nodiscard]] std::size_t evidence_class(const AssessmentEvidence& evidence);

/// The share of assessments of that class that were right: low and medium where the limit was not reached within the
/// horizon after them, high and critical where it was.
[[nodiscard]] double calibrated_confidence(const AssessmentEvidence& evidence);

}  // namespace tidemark
