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
constexpr double kClassEndsOfGrowth[kEvidenceClasses - 1] = {1.5, 2.5, 5};
constexpr double kClassEndsOfRest[kEvidenceClasses - 1] = {0.1, 0.3, 1};

}  // namespace

std::size_t evidence_class(const RiskAssessment& risk, const ForecastOptions& options) {
  const bool grows = risk.seconds_to_limit.has_value();
  const double ratio = grows ? risk.growth_seconds / std::max(risk.seconds_to_limit->expected, 1e-9)
                             : risk.span_seconds / options.horizon_seconds;
  const auto& ends = grows ? kClassEndsOfGrowth : kClassEndsOfRest;
  return static_cast<std::size_t>(
      std::count_if(std::begin(ends), std::end(ends), [&](double end) { return ratio >= end; }));
}

double calibrated_confidence(const RiskAssessment& risk, const ForecastOptions& options) {
  return kRight[static_cast<std::size_t>(risk.level)][evidence_class(risk, options)];
}

}  // namespace tidemark
