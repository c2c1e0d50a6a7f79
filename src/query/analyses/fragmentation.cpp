#include "analyze/fragmentation/fragmentation.h"

#include <utility>

#include "query/analyses/analysis.h"

namespace tidemark {

Analysis fragmentation_analysis() {
  AnalysisParts<Fragmentation, Store> parts;
  parts.info = {
      "fragmentation",
      "Reserved memory that is not allocated, and the blocks that keep it reserved",
      "",
      {by_option("stack"),
       top_option(FragmentationOptions().top, "Segments and stacks to list for each device; 0 = all"),
       simulate_option()},
      true,
      {"snapshot.pickle", "snapshot.pickle --at end --top 0", "snapshot.pickle -o segments.png",
       "snapshot.pickle --category activation", "snapshot.pickle --format json | jq '.devices[0].at_peak_reserved'"},
      true,
      true,
      false,
      true};
  parts.analyze = [](const Store& store, Symbols& symbols, const AnalysisOptions& options) -> Result<Fragmentation> {
    const auto at = options.moment(store);
    if (!at) return at.error();
    auto holders = options.holders(store);
    if (!holders) return holders.error();
    FragmentationOptions what;
    what.holders = std::move(*holders);
    if (!store.segment_changes.empty() && options.word("by") != "category")
      what.categories = holders_by_category(store, options.attribute(store));
    what.at = *at;
    what.device = options.device;
    what.top = options.count("top");
    auto fragmentation = analyze_fragmentation(store, symbols, what);
    if (fragmentation && options.simulate && wants_simulation(*fragmentation)) {
      if (auto simulation = options.simulate(store, symbols)) cite_simulation(std::move(*simulation), *fragmentation);
    }
    return fragmentation;
  };
  return make_analysis(std::move(parts));
}

}  // namespace tidemark
