// Words for the comparison of processes, the same in text and on a page.
#pragma once

#include <optional>
#include <string>

#include "analyze/usage/ranks.h"

namespace tidemark {

/// "rank 1, cuda:1", "rank 1, DataLoader worker 4712 of 4711, cpu", "pid 4711, cuda:0"; the file of a snapshot.
[[nodiscard]] std::string rank_name(const RankRow& row);

/// "+33.3%", or "n/a".
[[nodiscard]] std::string difference_text(const std::optional<double>& difference);

/// "cuda: median of 64 peaks 36.0 MiB; outliers beyond ±1.8 MiB".
[[nodiscard]] std::string group_text(const RankGroup& group);

}  // namespace tidemark
