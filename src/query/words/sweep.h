// Trials in words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/sweep/sweep.h"

namespace tidemark {

/// "fits, 12.3 GiB used", "does not fit", or "failed: " and why.
[[nodiscard]] std::string outcome_text(const TrialResult& result);

/// "yes", "no" or "failed".
[[nodiscard]] std::string fits_text(const TrialResult& result);

/// "12.3 GiB"; "≥ 12.3 GiB" of a trial that ran out of memory; "n/a".
[[nodiscard]] std::string trial_bytes_text(const TrialResult& result, const std::optional<std::uint64_t>& bytes);

/// "seq=128 batch=4": the varied arguments of a row.
[[nodiscard]] std::string configuration_text(const Sweep& sweep, const SweepRow& row);

/// "yes", "no" or "failed"; "~yes" or "~no" if predicted; "n/a".
[[nodiscard]] std::string fits_text(const SweepRow& row);

/// "104.3 MiB + 1.2 MiB * batch + 3.1 KiB * batch * seq", for each group if they differ, after "A100-40GB: ".
[[nodiscard]] std::vector<std::string> law_text(const Sweep& sweep, const Law& law);

/// "median 0.1%, largest 0.4% (12 trials, each predicted from the others)".
[[nodiscard]] std::string law_error_text(const Law& law);

}  // namespace tidemark
