#include "analyze/usage/table.h"

#include "query/analyses/analysis.h"

namespace tidemark {
namespace {

constexpr const char* kGroupings =
    "stack|size|device|thread|stream|pool|annotation|category|component|layer|module|phase|step";

}  // namespace

Analysis table_analysis() {
  AnalysisParts<Table, Store> parts;
  parts.info = {"table",
                "Live allocations at a point in time, by stack, size, stream, ...",
                "",
                {{"by", AnalysisOption::Kind::word, kGroupings, "Group blocks by", "stack"},
                 top_option(TableOptions().top, "Rows to list for each device; 0 = all")},
                true,
                {"run.tide", "run.tide --by size --at end", "run.tide --by thread --at 12.5s --format csv",
                 "snapshot.pickle --by pool", "run.tide --by annotation --at backward@3",
                 "run.tide --by module --category activation"},
                true};
  parts.analyze = [](const Store& store, Symbols& symbols, const AnalysisOptions& options) -> Result<Table> {
    const auto at = options.moment(store);
    if (!at) return at.error();
    const auto chosen = options.chosen_blocks(store);
    if (!chosen) return chosen.error();
    const GroupBy by = *value_in(kGroupByNames, options.word("by"));
    const auto attribution = needs_attribution(by) ? options.attribute(store) : nullptr;
    return analyze_table(store, symbols, {by, *at, options.device, options.count("top"), attribution.get(), *chosen});
  };
  return make_analysis(std::move(parts));
}

}  // namespace tidemark
