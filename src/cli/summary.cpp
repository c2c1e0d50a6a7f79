#include "analyze/summary.h"

#include <memory>

#include "cli/reading.h"

namespace tidemark::cli {
namespace {

struct Options : ReadingOptions {
  std::size_t top = 10;
};

int run(const Options& options) {
  const auto summaries =
      analyze_files<Summary>(options.files, open_overview, [&](const Overview& overview, Symbols& symbols) {
        return analyze_summary(overview, symbols, {options.only_device(), options.top});
      });
  if (!summaries) return fail(summaries.error().message);
  return print(options.format == "json" ? to_json(*summaries) : join_texts(*summaries, true));
}

}  // namespace

std::function<int()> setup_summary(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_files(app, *options);
  add_format(app, *options, "text|json");
  app.add_option("--top", options->top, "How many places to list for each device; 0 = all")->type_name("N");
  app.footer(
      "Examples:\n"
      "  tidemark summary run.tide\n"
      "  tidemark summary run.rank*.tide --device cuda:0\n"
      "  tidemark summary run.tide --format json | jq '.devices[0].peak_allocated_bytes'");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
