#include "analyze/oom/explain.h"

#include "report/analyses/analysis.h"

namespace tidemark {

Analysis explain_analysis() {
  AnalysisParts<Explanation, Store> parts;
  parts.info = {"explain",
                "Why memory ran out: who held it, and what would have let it pass",
                "",
                {top_option(ExplainOptions().top, "How many holders to list for each failure; 0 = all"),
                 {"failures", AnalysisOption::Kind::count, "N",
                  "How many failures to explain, the latest first, equal ones as one; 0 = all",
                  std::to_string(ExplainOptions().failures)},
                 {"capacity", AnalysisOption::Kind::size, "BYTES",
                  "What the device has in all (\"total capacity\" in PyTorch's message): shows what others use", ""}},
                false,
                {"snapshot.pickle", "snapshot.pickle --capacity 79.18GiB", "run.tide --top 5 --failures 0",
                 "snapshot.pickle --format json | jq '.failures[0].cause'"}};
  parts.analyze = [](const Store& store, Symbols& symbols, const AnalysisOptions& options) -> Result<Explanation> {
    ExplainOptions what;
    what.device = options.device;
    what.top = options.count("top");
    what.failures = options.count("failures");
    what.capacity = options.given_size("capacity");
    return analyze_explain(store, symbols, what);
  };
  return make_analysis(std::move(parts));
}

}  // namespace tidemark
