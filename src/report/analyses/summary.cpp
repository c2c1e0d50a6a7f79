#include "analyze/summary.h"

#include "report/analyses/analysis.h"

namespace tidemark {

Analysis summary_analysis() {
  AnalysisParts<Summary, SampledOverview> parts;
  parts.info = {
      "summary",
      "Peak memory, and the call sites that held it",
      "",
      {top_option(SummaryOptions().top, "Call sites to list for each device; 0 = all")},
      false,
      {"run.tide", "run.rank*.tide --device cuda:0", "run.tide --format json | jq '.devices[0].peak_allocated_bytes'"}};
  parts.analyze = [](const SampledOverview& overview, Symbols& symbols,
                     const AnalysisOptions& options) -> Result<Summary> {
    return analyze_summary(
        overview, symbols,
        {options.device, options.count("top"), overview.samples, overview.host, overview.load_blocks});
  };
  parts.text_has_title = true;
  return make_analysis(std::move(parts));
}

}  // namespace tidemark
