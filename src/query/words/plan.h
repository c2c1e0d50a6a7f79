// A plan's verdict and its uncertainty, in words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/plan/plan.h"

namespace tidemark {

/// "fits on H200: at most 1.8 GiB of 139.8 GiB used in 3 training steps, 138.0 GiB left", or why it does not.
[[nodiscard]] std::string verdict_text(const Plan& plan);
/// "needs 65.5 GiB on each GPU: fits on A100-80GB, H100-80GB; not on L40S".
[[nodiscard]] std::string need_text(const PlanNeed& need);

/// "3 training steps".
[[nodiscard]] std::string steps_text(const Plan& plan);

/// Uncertainty of the figures, one sentence each; empty if there is none.
[[nodiscard]] std::vector<std::string> uncertainties(const Plan& plan);

}  // namespace tidemark
