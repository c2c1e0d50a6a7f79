#include "analyze/forecast/calibration.h"

#include <algorithm>

namespace tidemark {
namespace {

// Printed by `detectors_bench --seed 1 --seeds 20 --runs 4 --fit`: rows are levels, columns classes of evidence.
constexpr double kRight[4][kEvidenceClasses] = {
    {0.876, 0.858, 0.906, 0.988, 0.5, 0.5, 0.5, 0.5},
    {0.5, 0.5, 0.648, 0.963, 0.198, 0.263, 0.5, 0.5},
    {0.5, 0.5, 0.5, 0.5, 0.938, 0.993, 0.999, 0.999},
    {0.5, 0.5, 0.5, 0.5, 0.929, 0.995, 0.998, 0.999},
};
constexpr std::size_t kHalf = kEvidenceClasses / 2;
constexpr double kClassEndsOfGrowth[kHalf - 1] = {1.5, 2.5, 5};
constexpr double kClassEndsOfRest[kHalf - 1] = {0.1, 0.3, 1};

}  // namespace

std::size_t evidence_class(const RiskAssessment& risk, const ForecastOptions& options) {
  const bool grows = risk.seconds_to_limit.has_value();
  const double ratio = grows ? risk.growth_seconds / std::max(risk.seconds_to_limit->expected, 1e-9)
                             : risk.span_seconds / options.horizon_seconds;
  const auto& ends = grows ? kClassEndsOfGrowth : kClassEndsOfRest;
  return (grows ? kHalf : 0) + static_cast<std::size_t>(std::count_if(std::begin(ends), std::end(ends),
                                                                      [&](double end) { return ratio >= end; }));
}

double calibrated_confidence(const RiskAssessment& risk, const ForecastOptions& options) {
  return kRight[static_cast<std::size_t>(risk.level)][evidence_class(risk, options)];
}

}  // namespace tidemark
