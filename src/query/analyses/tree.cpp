#include "analyze/usage/tree.h"

#include <optional>
#include <utility>

#include "query/analyses/analysis.h"

namespace tidemark {

Analysis tree_analysis() {
  AnalysisParts<Tree, Store> parts;
  parts.info = {
      "tree",
      "Live allocations at a point in time, as a call tree",
      "",
      {{"by", AnalysisOption::Kind::word, "category|component|layer|module|phase|step",
        "Put the calls below the owners of what they allocated; module: the modules alone", ""},
       {"depth", AnalysisOption::Kind::count, "N", "Levels of callers to list", std::to_string(TreeOptions::kMaxDepth),
        1, TreeOptions::kMaxDepth},
       {"min-share", AnalysisOption::Kind::share, "SHARE",
        "Leave out callers that hold less than this, such as 1% or 0", "1%"},
       {"by-count", AnalysisOption::Kind::flag, "", "Order and shares by number of blocks instead of bytes", ""}},
      true,
      {"run.tide", "run.tide --at end --min-share 0 --depth 12", "run.tide --by-count --device cpu",
       "run.tide --by module", "run.tide --category activation"},
      true};
  parts.analyze = [](const Store& store, Symbols& symbols, const AnalysisOptions& options) -> Result<Tree> {
    const auto at = options.moment(store);
    if (!at) return at.error();
    const auto chosen = options.chosen_blocks(store);
    if (!chosen) return chosen.error();
    TreeOptions what;
    what.at = *at;
    what.device = options.device;
    what.depth = options.count("depth");
    what.min_share = options.share("min-share");
    what.by_count = options.flag("by-count");
    what.filter = *chosen;
    const auto by = value_in(kOwnerKindNames, options.word("by"));
    const auto attribution = by ? options.attribute(store) : nullptr;
    std::optional<OwnerGroups> groups;
    if (by) {
      auto made = OwnerGroups::create(store, *attribution, *by);
      if (!made) return made.error();
      groups = std::move(*made);
      what.groups = &*groups;
    }
    return analyze_tree(store, symbols, what);
  };
  return make_analysis(std::move(parts));
}

}  // namespace tidemark
