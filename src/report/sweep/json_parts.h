// What the JSON of fits and sweeps share.
#pragma once

#include "analyze/sweep/sweep.h"
#include "analyze/sweep/trial.h"
#include "report/common/json_parts.h"

namespace tidemark {

/// {"fits", "peak_allocated_bytes", ..., "failure", "uncertain"}.
Json trial_json(const TrialResult& result);

/// The values of a row by the names of the arguments, as text.
Json values_json(const Sweep& sweep, const SweepRow& row);

}  // namespace tidemark
