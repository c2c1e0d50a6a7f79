// Trials in words.
#pragma once

#include <string>

#include "analyze/sweep/trial.h"

namespace tidemark {

/// "fits, 12.3 GiB used", "does not fit", or "failed: " and why.
[[nodiscard]] std::string outcome_text(const TrialResult& result);

/// "yes", "no" or "failed".
[[nodiscard]] std::string fits_text(const TrialResult& result);

/// "12.3 GiB"; "≥ 12.3 GiB" of a trial that ran out of memory; "n/a".
[[nodiscard]] std::string trial_bytes_text(const TrialResult& result, const std::optional<std::uint64_t>& bytes);

}  // namespace tidemark
