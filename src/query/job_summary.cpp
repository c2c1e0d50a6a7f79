#include "query/job_summary.h"

#include <fmt/format.h>

#include <set>
#include <utility>

namespace tidemark {

Result<void> check_rank(const std::vector<RankRow>& rows) {
  std::set<std::int32_t> ranks;
  for (const RankRow& row : rows) {
    if (row.chosen.value_or(true)) return {};
    if (row.recording.process.rank) ranks.insert(*row.recording.process.rank);
  }
  return Error{ranks.empty()
                   ? "--rank: these recordings have no ranks"
                   : fmt::format("--rank: no recording of this rank (available: {})", fmt::join(ranks, ", "))};
}

Result<JobSummary> compare_summaries(const std::vector<Summary>& summaries, std::size_t detailed) {
  std::vector<RankRow> rows;
  rows.reserve(summaries.size());
  for (const Summary& summary : summaries) rows.push_back(rank_row(rows.size(), summary));
  if (auto status = check_rank(rows); !status) return status.error();
  JobSummary job;
  if (summaries.size() == 1) {
    job.summaries = {&summaries.front()};
    return job;
  }
  job.ranks = compare_ranks(std::move(rows));
  for (const RankRow& row : job.ranks->rows) {
    if (row.chosen.value_or(summaries.size() <= detailed)) job.summaries.push_back(&summaries[row.index]);
  }
  return job;
}

}  // namespace tidemark
