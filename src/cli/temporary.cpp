#include "analyze/temporary.h"

#include <memory>

#include "cli/reading.h"
#include "report/text/csv.h"

namespace tidemark::cli {
namespace {

struct Options : ReadingOptions {
  std::uint64_t within = TemporaryOptions().within;
  std::size_t top = TemporaryOptions().top;
};

int run(const Options& options) {
  const auto results = analyze_files<Temporary>(options.files, open_store, [&](const Store& store, Symbols& symbols) {
    return analyze_temporary(store, symbols, {options.within, options.only_device(), options.top});
  });
  if (!results) return fail(results.error().message);
  if (options.format == "json") return print(to_json(*results));
  return print(options.format == "csv" ? to_csv(*results) : join_texts(*results, false));
}

}  // namespace

std::function<int()> setup_temporary(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_files(app, *options);
  add_format(app, *options, "text|json|csv");
  app.add_option("--within", options->within, "Temporary: freed after at most N other allocations on its device [1]")
      ->type_name("N");
  app.add_option("--top", options->top, "How many stacks to list for each device; 0 = all")->type_name("N");
  app.footer(
      "Examples:\n"
      "  tidemark temporary run.tide\n"
      "  tidemark temporary run.tide --within 10 --device cuda:0\n"
      "  tidemark temporary snapshot.pickle --top 0 --format csv");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
