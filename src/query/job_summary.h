// The summaries of several processes, side by side.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "analyze/usage/ranks.h"
#include "analyze/usage/summary.h"
#include "base/result.h"

namespace tidemark {

struct JobSummary {
  std::optional<RankComparison> ranks;    ///< none of a single recording
  std::vector<const Summary*> summaries;  ///< in the order of the table; those that are shown in detail
};

/// Fails, listing the ranks that are there, when none of them is the one that was asked for.
Result<void> check_rank(const std::vector<RankRow>& rows);

/// Of the rank that was asked for there are details, else of all where these are `detailed` at most. `summaries` has to
/// outlive the result.
[[nodiscard]] Result<JobSummary> compare_summaries(const std::vector<Summary>& summaries, std::size_t detailed);

}  // namespace tidemark
