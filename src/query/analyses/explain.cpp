#include "analyze/oom/explain.h"

#include <utility>

#include "query/analyses/analysis.h"

namespace tidemark {

Analysis explain_analysis() {
  AnalysisParts<Explanation, Store> parts;
  parts.info = {
      "explain",
      "Out-of-memory errors: cause, fixes that are enough, largest allocations",
      "",
      {by_option("stack"),
       top_option(ExplainOptions().top, "Allocations to list for each error; 0 = all"),
       {"failures", AnalysisOption::Kind::count, "N",
        "Out-of-memory errors to explain, latest first, equal ones as one; 0 = all",
        std::to_string(ExplainOptions().failures)},
       {"capacity", AnalysisOption::Kind::size, "BYTES",
        "Total memory of the device (\"total capacity\" in PyTorch's message); shows what other processes use", ""},
       simulate_option()},
      false,
      {"snapshot.pickle", "snapshot.pickle --capacity 79.18GiB", "run.tide --top 5 --failures 0",
       "run.tide --by category", "snapshot.pickle --format json | jq '.failures[0].cause'"},
      true,
      true,
      false,
      true};
  parts.analyze = [](const Store& store, Symbols& symbols, const AnalysisOptions& options) -> Result<Explanation> {
    auto holders = options.holders(store);
    if (!holders) return holders.error();
    ExplainOptions what;
    what.holders = std::move(*holders);
    what.device = options.device;
    what.top = options.count("top");
    what.failures = options.count("failures");
    what.capacity = options.given_size("capacity");
    const auto attribution = options.attribute(store);
    what.attribution = attribution.get();
    auto explanation = analyze_explain(store, symbols, what);
    if (explanation && options.simulate && wants_simulation(*explanation)) {
      if (const auto simulation = options.simulate(store, symbols)) cite_simulation(*simulation, *explanation);
    }
    return explanation;
  };
  return make_analysis(std::move(parts));
}

}  // namespace tidemark
