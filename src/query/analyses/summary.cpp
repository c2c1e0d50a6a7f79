#include "analyze/usage/summary.h"

#include <memory>
#include <utility>

#include "analyze/usage/ranks.h"
#include "query/analyses/analysis.h"

namespace tidemark {
namespace {

// Selects the holders listed instead of call sites, which needs the blocks.
Result<void> choose_holders(const SampledOverview& overview, const AnalysisOptions& options, SummaryOptions& chosen) {
  if (options.filter.empty() && options.word("by") == "call-site") return {};
  auto loaded = overview.load_blocks();
  if (!loaded) return loaded.error();
  const std::shared_ptr<const AttributedStore> store = std::move(*loaded);
  AnalysisOptions of_blocks = options;
  of_blocks.attribution = store->attribution;
  of_blocks.attribution = of_blocks.attribute(*store);
  auto holders = of_blocks.holders(*store);
  if (!holders) return holders.error();
  if (chosen.owners.breakdown && !options.filter.empty()) {
    const Symbols symbols(store->definitions);
    BreakdownOptions what;
    what.filter = *of_blocks.chosen_blocks(*store);  // as the holders found
    auto breakdown = analyze_breakdown(*store, symbols, *of_blocks.attribution, what);
    if (!breakdown) return breakdown.error();
    chosen.owners.breakdown = std::make_shared<const Breakdown>(std::move(*breakdown));
  }
  chosen.holders = std::move(*holders);
  chosen.blocks = store;
  return {};
}

// Several processes begin with a table of all.
Result<std::string> json_of_summaries(const std::vector<Summary>& summaries) {
  const auto job = compare_summaries(summaries, summaries.size());
  if (!job) return job.error();
  return job->ranks ? to_json(*job) : to_json(*job->summaries.front());
}

}  // namespace

Analysis summary_analysis() {
  AnalysisParts<Summary, SampledOverview> parts;
  parts.info = {
      "summary",
      "Peak memory: categories, call sites, and changes that save",
      "Recordings can be read while their programs run: the summary shows the state of about one second ago. Several "
      "recordings begin with a table of them; details follow for one or two recordings, and for --rank N.",
      {by_option("call-site"), rank_option(),
       top_option(SummaryOptions().top, "Rows to list for each device; 0 = all")},
      false,
      {"run.tide", "run.tide --by module --category activation", "run.rank*.tide", "run.rank*.tide --rank 3",
       "run.tide --format json | jq '.devices[0].peak_allocated_bytes'", "run.tide --follow",
       "--follow --pid 4711 --interval 10s"},
      true,
      true,
      true,
      true};
  parts.analyze = [](const SampledOverview& overview, Symbols& symbols,
                     const AnalysisOptions& options) -> Result<Summary> {
    SummaryOptions chosen;
    chosen.device = options.device;
    chosen.rank = options.given_count("rank");
    chosen.top = options.count("top");
    chosen.samples = overview.samples;
    chosen.host = overview.host;
    chosen.host_ledgers = overview.host_ledgers;
    chosen.load_blocks = overview.load_blocks;
    chosen.owners = overview.owners;
    if (auto status = choose_holders(overview, options, chosen); !status) return status.error();
    return analyze_summary(overview, symbols, chosen);
  };
  parts.json = json_of_summaries;
  return make_analysis(std::move(parts));
}

}  // namespace tidemark
