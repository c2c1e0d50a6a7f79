#include "analyze/forecast/calibration.h"

#include <algorithm>

namespace tidemark {
namespace {

// Printed by `detectors_bench --seed 1 --seeds 20 --runs 4 --fit`: rows are levels, columns classes of evidence. 0.500
// stands where no assessment can be.
constexpr double kRight[4][kEvidenceClasses] = {
    {0.815, 0.859, 0.918, 0.986, 0.500, 0.500, 0.500, 0.500},
    {0.854, 0.878, 0.938, 0.979, 0.924, 0.991, 0.992, 0.937},
    {0.500, 0.500, 0.500, 0.500, 0.875, 0.992, 0.999, 0.999},
    {0.500, 0.500, 0.500, 0.500, 0.900, 0.994, 0.998, 0.999},
};
constexpr std::size_t kHalf = kEvidenceClasses / 2;
constexpr double kClassEndsOfGrowth[kHalf - 1] = {1.5, 2.5, 5};
constexpr double kClassEndsOfRest[kHalf - 1] = {0.1, 0.3, 1};

}  // namespace

bool foresees_limit(const RiskAssessment& risk, const ForecastOptions& options) {
  return risk.level > RiskLevel::low && risk.seconds_to_limit &&
         risk.seconds_to_limit->expected <= options.horizon_seconds;
}

std::size_t evidence_class(const RiskAssessment& risk, const ForecastOptions& options) {
  const bool foreseen = foresees_limit(risk, options);
  const double ratio = foreseen ? risk.growth_seconds / std::max(risk.seconds_to_limit->expected, 1e-9)
                                : risk.span_seconds / options.horizon_seconds;
  const auto& ends = foreseen ? kClassEndsOfGrowth : kClassEndsOfRest;
  return (foreseen ? kHalf : 0) + static_cast<std::size_t>(std::count_if(std::begin(ends), std::end(ends),
                                                                         [&](double end) { return ratio >= end; }));
}

double calibrated_confidence(const RiskAssessment& risk, const ForecastOptions& options) {
  return kRight[static_cast<std::size_t>(risk.level)][evidence_class(risk, options)];
}

}  // namespace tidemark
