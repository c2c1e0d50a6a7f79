#include "analyze/ledger.h"

#include <memory>

#include "cli/reading.h"

namespace tidemark::cli {
namespace {

int run(const ReadingOptions& options) {
  LedgerOptions what;
  what.device = options.only_device();
  if (options.format == "text") what.points = 0;
  const auto ledgers = analyze_files<Ledger>(options.files, open_store, [&](const Store& store, Symbols& symbols) {
    const auto at = options.moment(store);
    if (!at) return Result<Ledger>(at.error());
    what.at = *at;
    return analyze_ledger(store, symbols, what);
  });
  if (!ledgers) return fail(ledgers.error().message);
  return print(options.format == "json" ? to_json(*ledgers) : join_texts(*ledgers, false));
}

}  // namespace

std::function<int()> setup_ledger(CLI::App& app) {
  auto options = std::make_shared<ReadingOptions>();
  add_files(app, *options);
  add_format(app, *options, "text|json");
  add_moment(app, *options);
  app.footer(
      "Here the peak is that of the whole device: the sample at which most of it was used.\n"
      "\n"
      "Examples:\n"
      "  tidemark ledger run.tide\n"
      "  tidemark ledger run.tide --at end --device cuda:1\n"
      "  tidemark ledger run.tide --format json | jq '.devices[0].ledger.unexplained_bytes'");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
