#include "analyze/usage/temporary.h"

#include "query/analyses/analysis.h"

namespace tidemark {

Analysis temporary_analysis() {
  AnalysisParts<Temporary, Store> parts;
  parts.info = {"temporary",
                "Short-lived allocations by stack, and the peak without them",
                "",
                {{"by", AnalysisOption::Kind::word, "stack|category|component|layer|module|phase|step",
                  "Group the allocations by", "stack"},
                 {"within", AnalysisOption::Kind::count, "N",
                  "An allocation is temporary when it is freed after at most N other allocations on its device",
                  std::to_string(TemporaryOptions().within)},
                 top_option(TemporaryOptions().top, "Rows to list for each device; 0 = all")},
                false,
                {"run.tide", "run.tide --within 10 --device cuda:0", "snapshot.pickle --top 0 --format csv",
                 "run.tide --phase backward", "run.tide --by module"},
                true};
  parts.analyze = [](const Store& store, Symbols& symbols, const AnalysisOptions& options) -> Result<Temporary> {
    const auto chosen = options.chosen_blocks(store);
    if (!chosen) return chosen.error();
    const auto by = value_in(kOwnerKindNames, options.word("by"));
    const auto attribution = by ? options.attribute(store) : nullptr;
    return analyze_temporary(
        store, symbols,
        {options.count("within"), options.device, options.count("top"), *chosen, by, attribution.get()});
  };
  return make_analysis(std::move(parts));
}

}  // namespace tidemark
