#include "query/comparison.h"

#include "store/symbols.h"

namespace tidemark {
namespace {

template <typename Attributed>
Result<ComparedRecording> reduce(Attributed&& store, AnalysisOptions options) {
  AnalysisOptions chosen({by_option("stack")});
  chosen.set("by", options.word("group-by"));
  chosen.filter = std::move(options.filter);
  chosen.rules = std::move(options.rules);
  chosen.attribution = store.attribution;
  const auto holders = chosen.holders(store);
  if (!holders) return holders.error();
  const std::string chosen_blocks = filter_text(chosen.filter);
  std::shared_ptr<const Breakdown> categories;
  if (store.attribution && chosen_blocks.empty()) {
    const Symbols symbols(store.definitions);
    auto breakdown = analyze_breakdown(store, symbols, *store.attribution, {});
    if (breakdown) categories = std::make_shared<const Breakdown>(std::move(*breakdown));
  }
  ComparedRecording reduced = reduce_for_compare(std::forward<Attributed>(store), *holders);
  reduced.chosen_blocks = chosen_blocks;
  reduced.breakdown = std::move(categories);
  return reduced;
}

}  // namespace

std::vector<AnalysisOption> compare_options() {
  return {
      {"by", AnalysisOption::Kind::word, "peak|traffic",
       "Compare memory of each stack at the peak, or its allocations over time", "peak"},
      {"group-by", AnalysisOption::Kind::word, by_option("stack").value, "Compare stacks, or owners of memory",
       "stack"},
      {"ignore-lines", AnalysisOption::Kind::flag, "", "Match stacks by file and function, ignoring line numbers", ""},
      top_option(CompareOptions().top, "Changes to list for each device; 0 = all"),
      {"fail-over", AnalysisOption::Kind::limit, "LIMIT",
       "Exit with 1 when a device's peak allocated memory in B exceeds that in A by more than this: 5%, 100MiB", ""}};
}

CompareOptions compare_what(const AnalysisOptions& options) {
  CompareOptions what;
  what.by = *value_in(kCompareByNames, options.word("by"));
  what.ignore_lines = options.flag("ignore-lines");
  what.device = options.device;
  what.top = options.count("top");
  if (auto budget = parse_budget(options.word("fail-over"))) what.budget = std::move(*budget);
  return what;
}

Result<ComparedRecording> reduce_chosen(AttributedStore&& store, AnalysisOptions options) {
  return reduce(std::move(store), std::move(options));
}

Result<ComparedRecording> reduce_chosen(const AttributedStore& store, AnalysisOptions options) {
  return reduce(store, std::move(options));
}

Result<Comparison> compare_recordings(Recording& a, Recording& b, const AnalysisOptions& options) {
  std::vector<ComparedRecording> reduced;
  for (Recording* recording : {&a, &b}) {
    const auto store = recording->blocks();
    if (!store) return store.error();
    AnalysisOptions of_recording = options;
    of_recording.rules = recording->choice().rules;
    auto made = reduce_chosen(**store, std::move(of_recording));
    if (!made) return made.error();
    reduced.push_back(std::move(*made));
  }
  Symbols symbols_a(reduced[0].overview.definitions);
  Symbols symbols_b(reduced[1].overview.definitions);
  return analyze_compare(reduced[0], symbols_a, reduced[1], symbols_b, compare_what(options));
}

}  // namespace tidemark
