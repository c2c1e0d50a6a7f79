#include "analyze/patterns.h"

#include <memory>

#include "cli/reading.h"

namespace tidemark::cli {
namespace {

struct Options : ReadingOptions {
  std::size_t top = PatternsOptions().top;
};

int run(const Options& options) {
  const auto results = analyze_files<Patterns>(options.files, open_store, [&](const Store& store, Symbols& symbols) {
    return analyze_patterns(store, symbols, {options.only_device(), options.top});
  });
  if (!results) return fail(results.error().message);
  return print(options.format == "json" ? to_json(*results) : join_texts(*results, false));
}

}  // namespace

std::function<int()> setup_patterns(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_files(app, *options);
  add_format(app, *options, "text|json");
  app.add_option("--top", options->top, "How many stacks to list for each pattern; 0 = all")->type_name("N");
  app.footer(
      "Examples:\n"
      "  tidemark patterns run.tide\n"
      "  tidemark patterns snapshot.pickle --device cuda:0 --format json");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
