// What the JSON of fits and sweeps share.
#pragma once

#include "analyze/sweep/trial.h"
#include "report/json/parts.h"

namespace tidemark {

/// {"fits", "peak_allocated_bytes", ..., "failure", "uncertain"}.
Json trial_json(const TrialResult& result);

}  // namespace tidemark
