#include "analyze/timeline/timeline.h"

#include "analyze/attribution/groups.h"
#include "query/analyses/analysis.h"

namespace tidemark {

Analysis timeline_analysis() {
  AnalysisParts<Timeline, Store> parts;
  parts.info = {"timeline",
                "Allocated and reserved memory over time; also as PNG and SVG",
                "",
                {{"by", AnalysisOption::Kind::word, "device|call-site|category|component|layer|module|phase|step",
                  "Show the allocated memory of each device as a whole, or in layers", "device"},
                 {"points", AnalysisOption::Kind::count, "N",
                  "Maximum number of points for each device; extremes are always kept",
                  std::to_string(TimelineOptions().points), 8, 1'000'000}},
                false,
                {"run.tide", "run.tide -o timeline.png", "run.tide --by call-site -o call_sites.png",
                 "run.rank*.tide --plot ranks.svg", "run.tide --format csv --points 500 > timeline.csv",
                 "run.tide --by category --plot categories.png", "run.tide --follow",
                 "run.tide --follow --interval 30s -o memory.png"},
                true,
                false,
                true};
  parts.analyze = [](const Store& store, Symbols& symbols, const AnalysisOptions& options) -> Result<Timeline> {
    const auto chosen = options.chosen_blocks(store);
    if (!chosen) return chosen.error();
    const auto by = value_in(kOwnerKindNames, options.word("by"));
    const bool with_bands = options.format != "csv";
    const auto attribution = with_bands || by ? options.attribute(store) : nullptr;
    auto timeline = analyze_timeline(store, symbols, {options.device, options.count("points"), *chosen});
    if (!timeline) return timeline;
    if (with_bands) timeline->bands = find_bands(store, *attribution, options.count("points"));
    if (options.word("by") == "call-site") add_call_sites(*timeline, store, symbols, kMaxLayers, *chosen);
    if (!by) return timeline;
    const auto groups = OwnerGroups::create(store, *attribution, *by);
    if (!groups) return groups.error();
    add_owners(*timeline, store, *by, *groups, *chosen);
    return timeline;
  };
  return make_analysis(std::move(parts));
}

}  // namespace tidemark
