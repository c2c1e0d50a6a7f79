#include "analyze/advice/patterns.h"

#include "query/analyses/analysis.h"

namespace tidemark {

Analysis patterns_analysis() {
  AnalysisParts<Patterns, Store> parts;
  parts.info = {"patterns", "Changes that lower the peak, and how much each saves",
                "",         {top_option(PatternsOptions().top, "Stacks to list for each pattern; 0 = all")},
                false,      {"run.tide", "snapshot.pickle --device cuda:0 --format json"},
                true};
  parts.analyze = [](const Store& store, Symbols& symbols, const AnalysisOptions& options) -> Result<Patterns> {
    const auto chosen = options.chosen_blocks(store);
    if (!chosen) return chosen.error();
    const auto attribution = options.attribute(store);
    return analyze_patterns(store, symbols,
                            {options.device, options.count("top"), nullptr, *chosen, attribution.get()});
  };
  return make_analysis(std::move(parts));
}

}  // namespace tidemark
