#include "analyze/patterns.h"

#include "report/analyses/analysis.h"

namespace tidemark {

Analysis patterns_analysis() {
  AnalysisParts<Patterns, Store> parts;
  parts.info = {"patterns", "What makes the peak larger than it had to be, by lifetimes",
                "",         {top_option(PatternsOptions().top, "How many stacks to list for each pattern; 0 = all")},
                false,      {"run.tide", "snapshot.pickle --device cuda:0 --format json"}};
  parts.analyze = [](const Store& store, Symbols& symbols, const AnalysisOptions& options) -> Result<Patterns> {
    return analyze_patterns(store, symbols, {options.device, options.count("top")});
  };
  return make_analysis(std::move(parts));
}

}  // namespace tidemark
