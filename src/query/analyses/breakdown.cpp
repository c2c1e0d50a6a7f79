#include "analyze/usage/breakdown.h"

#include "query/analyses/analysis.h"

namespace tidemark {

Analysis breakdown_analysis() {
  AnalysisParts<Breakdown, Store> parts;
  parts.info = {"breakdown",
                "Memory by category, module and phase: parameters, gradients, activations, ...",
                "Categories add up to what was allocated. Each has a confidence: exact (from the pointers of the "
                "model's and the optimizer's tensors), estimated (from stacks and lifetimes), or unknown.",
                {{"by", AnalysisOption::Kind::word, "component|layer|module|phase|step", "What the rows are", "", 0, 0,
                  "component, where it is known"},
                 top_option(BreakdownOptions().top, "Rows to list for each device; 0 = all")},
                true,
                {"run.tide", "run.tide --by layer --at end", "run.tide --category activation --by module --top 0",
                 "run.tide --by layer --plot layers.png", "run.tide --format json | jq '.devices[0].categories'"},
                true};
  parts.analyze = [](const Store& store, Symbols& symbols, const AnalysisOptions& options) -> Result<Breakdown> {
    const auto at = options.moment(store);
    if (!at) return at.error();
    const auto chosen = options.chosen_blocks(store);
    if (!chosen) return chosen.error();
    return analyze_breakdown(
        store, symbols, *options.attribute(store),
        {value_in(kOwnerKindNames, options.word("by")), *at, options.device, options.count("top"), *chosen});
  };
  return make_analysis(std::move(parts));
}

}  // namespace tidemark
