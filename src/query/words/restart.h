// The verdict on a restart in words. Printable.
#pragma once

#include <string>

#include "analyze/restart/restart.h"

namespace tidemark {

/// "rank 1 (node7, cuda:1)".
[[nodiscard]] std::string rank_place(const RankRecord& record);
/// "A restart will run out of memory again, at about step 41 (39 to 43)": a sentence without its full stop.
[[nodiscard]] std::string recurrence_text(const Recurrence& recurrence);
/// "Rank 1 (node7, cuda:1) ran out of memory first, in step 41": a sentence without its full stop.
[[nodiscard]] std::string first_rank_text(const RestartVerdict& verdict);
/// Why it recurs, or why that is unknown: a clause.
[[nodiscard]] std::string reason_text(const RestartVerdict& verdict);
/// Which ranks the verdict does not know, and what else limits it: a clause; empty if nothing does.
[[nodiscard]] std::string limits_text(const RestartVerdict& verdict);

/// "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True".
[[nodiscard]] std::string change_text(const RestartVerdict& verdict, const RestartChange& change);
/// "saves 2.0 GiB", "needs 14.2 GiB of each device with it (planned)".
[[nodiscard]] std::string change_effect_text(const RestartChange& change);

}  // namespace tidemark
