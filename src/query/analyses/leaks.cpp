#include "analyze/leaks/leaks.h"

#include <limits>

#include "query/analyses/analysis.h"

namespace tidemark {

Analysis leaks_analysis() {
  AnalysisParts<Leaks, Store> parts;
  parts.info = {"leaks",
                "Memory that grows from step to step, by stack",
                "",
                {{"by", AnalysisOption::Kind::word, "category|component|layer|module|phase|step",
                  "Also list whose memory it is that grows", ""},
                 top_option(LeakOptions().top, "Groups of leaks to list, and stacks of each; 0 = all"),
                 {"warmup", AnalysisOption::Kind::count, "N", "Steps at the beginning that may leave memory behind", "",
                  0, 1'000'000'000, "a tenth of the steps, at least 2"},
                 {"min-growth", AnalysisOption::Kind::rate, "SIZE[/step]",
                  "Leaks that grow by less are counted, not listed; 0 = list all", "", 0,
                  std::numeric_limits<std::uint32_t>::max(), "1KiB/step, or 1% of the peak over the run"},
                 {"fail-on-leak", AnalysisOption::Kind::flag, "", "Exit with 1 when the verdict is leak", ""}},
                false,
                {"run.tide", "snapshot.pickle --warmup 20", "run.tide --min-growth 10KiB/step",
                 "run.tide --format json --fail-on-leak", "run.tide --phase forward", "run.tide --by module"},
                true};
  parts.analyze = [](const Store& store, Symbols& symbols, const AnalysisOptions& options) -> Result<Leaks> {
    LeakOptions what;
    what.device = options.device;
    what.top = options.count("top");
    if (const auto warmup = options.given_count("warmup")) what.warmup_steps = static_cast<std::uint32_t>(*warmup);
    what.min_growth = options.given_rate("min-growth");
    const auto chosen = options.chosen_blocks(store);
    if (!chosen) return chosen.error();
    what.filter = *chosen;
    const auto attribution = options.attribute(store);
    what.attribution = attribution.get();
    what.by = value_in(kOwnerKindNames, options.word("by"));
    return analyze_leaks(store, symbols, what);
  };
  parts.check_failed = [](const Leaks& leaks, const AnalysisOptions& options) {
    return options.flag("fail-on-leak") && leaks.verdict == LeakVerdict::leak;
  };
  return make_analysis(std::move(parts));
}

}  // namespace tidemark
