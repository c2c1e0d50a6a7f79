#include "analyze/summary.h"

#include "analyze/ranks.h"
#include "report/analyses/analysis.h"
#include "report/words/ranks.h"

namespace tidemark {
namespace {

// Several processes begin with a table of all. Their details: of the rank that was asked for, or of two at most.
Result<std::string> write_summaries(const std::vector<Summary>& summaries, const std::string& format,
                                    const Terminal& terminal) {
  constexpr std::size_t kDetailed = 2;
  const bool json = format == "json";
  std::vector<RankRow> rows;
  rows.reserve(summaries.size());
  for (const Summary& summary : summaries) rows.push_back(rank_row(rows.size(), summary));
  if (auto fine = check_rank(rows); !fine) return fine.error();
  if (summaries.size() == 1) {
    return json ? to_json(std::span<const Summary>(summaries)) : to_text(summaries.front(), terminal);
  }
  const RankComparison ranks = compare_ranks(std::move(rows));
  std::vector<const Summary*> details;
  for (const RankRow& row : ranks.rows) {
    const Summary& summary = summaries[row.index];
    if (row.chosen.value_or(json || summaries.size() <= kDetailed)) details.push_back(&summary);
  }
  return json ? to_json(ranks, details) : to_text(ranks, details, terminal);
}

}  // namespace

Analysis summary_analysis() {
  AnalysisParts<Summary, SampledOverview> parts;
  parts.info = {
      "summary",
      "Peak memory, and the call sites that held it",
      "Recordings can be read while their programs run: the summary shows the state of about one second ago. Several "
      "recordings begin with a table of them; details follow for one or two recordings, and for --rank N.",
      {rank_option(), top_option(SummaryOptions().top, "Call sites to list for each device; 0 = all")},
      false,
      {"run.tide", "run.rank*.tide", "run.rank*.tide --rank 3",
       "run.tide --format json | jq '.devices[0].peak_allocated_bytes'"}};
  parts.analyze = [](const SampledOverview& overview, Symbols& symbols,
                     const AnalysisOptions& options) -> Result<Summary> {
    SummaryOptions chosen;
    chosen.device = options.device;
    chosen.rank = options.given_count("rank");
    chosen.top = options.count("top");
    chosen.samples = overview.samples;
    chosen.host = overview.host;
    chosen.load_blocks = overview.load_blocks;
    chosen.breakdown = overview.breakdown;
    chosen.advice = overview.advice;
    return analyze_summary(overview, symbols, chosen);
  };
  parts.text_has_title = true;
  parts.write_all = write_summaries;
  return make_analysis(std::move(parts));
}

}  // namespace tidemark
