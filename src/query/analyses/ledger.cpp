#include "analyze/ledger/ledger.h"

#include "query/analyses/analysis.h"

namespace tidemark {

Analysis ledger_analysis() {
  AnalysisParts<Ledger, Store> parts;
  parts.info = {"ledger",
                "All memory of GPUs and of the host: PyTorch, libraries, processes, page cache",
                "The peak is that of the whole device: the sample with the most used memory. The host is that of the "
                "control group "
                "with the lowest limit, else the machine.",
                {},
                true,
                {"run.tide", "run.tide --at end --device cuda:1", "run.tide --device host", "run.tide -o ledger.png",
                 "run.tide --format json | jq '.devices[0].ledger.unexplained_bytes'"}};
  parts.analyze = [](const Store& store, Symbols& symbols, const AnalysisOptions& options) -> Result<Ledger> {
    const auto at = options.moment(store);
    if (!at) return at.error();
    LedgerOptions what;
    what.device = options.device;
    what.at = *at;
    if (options.format == "text") what.points = 0;  // text does not show them
    return analyze_ledger(store, symbols, what);
  };
  return make_analysis(std::move(parts));
}

}  // namespace tidemark
