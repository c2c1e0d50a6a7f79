#include "analyze/forecast/calibration.h"

#include <algorithm>

namespace tidemark {
namespace {

// `detectors_bench --fit` printed this, of its training seeds.
constexpr double kRight[4][kEvidenceClasses] = {
    {0.95, 0.95, 0.95, 0.95},
    {0.80, 0.80, 0.80, 0.80},
    {0.85, 0.85, 0.85, 0.85},
    {0.90, 0.90, 0.90, 0.90},
};
constexpr double kClassEnds[kEvidenceClasses - 1] = {1.5, 2.5, 5};

}  // namespace

std::size_t evidence_class(const AssessmentEvidence& evidence) {
  return static_cast<std::size_t>(
      std::count_if(std::begin(kClassEnds), std::end(kClassEnds), [&](double end) { return evidence.ratio >= end; }));
}

double calibrated_confidence(const AssessmentEvidence& evidence) {
  return kRight[static_cast<std::size_t>(evidence.level)][evidence_class(evidence)];
}

}  // namespace tidemark
