#include "analyze/fragmentation.h"

#include <memory>

#include "cli/reading.h"

namespace tidemark::cli {
namespace {

struct Options : ReadingOptions {
  std::size_t top = FragmentationOptions().top;
};

int run(const Options& options) {
  FragmentationOptions what;
  what.at = options.moment();
  what.device = options.only_device();
  what.top = options.top;
  const auto results = analyze_files<Fragmentation>(
      options.files, open_store,
      [&](const Store& store, Symbols& symbols) { return analyze_fragmentation(store, symbols, what); });
  if (!results) return fail(results.error().message);
  return print(options.format == "json" ? to_json(*results) : join_texts(*results, false));
}

}  // namespace

std::function<int()> setup_fragmentation(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_files(app, *options);
  add_format(app, *options, "text|json");
  add_moment(app, *options);
  app.add_option("--top", options->top, "How many segments and stacks to list for each device; 0 = all")
      ->type_name("N");
  app.footer(
      "Examples:\n"
      "  tidemark fragmentation snapshot.pickle\n"
      "  tidemark fragmentation snapshot.pickle --at end --top 0\n"
      "  tidemark fragmentation snapshot.pickle --format json | jq '.devices[0].at_peak_reserved'");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
