#include "analyze/table.h"

#include <map>
#include <memory>

#include "cli/reading.h"
#include "report/text/csv.h"

namespace tidemark::cli {
namespace {

struct Options : ReadingOptions {
  std::string by = "stack";
  std::size_t top = 20;
};

GroupBy group_by(const std::string& word) {
  static const std::map<std::string, GroupBy> kWords = {{"stack", GroupBy::stack},          {"size", GroupBy::size},
                                                        {"device", GroupBy::device},        {"thread", GroupBy::thread},
                                                        {"stream", GroupBy::stream},        {"pool", GroupBy::pool},
                                                        {"annotation", GroupBy::annotation}};
  return kWords.at(word);
}

int run(const Options& options) {
  const auto tables = analyze_files<Table>(options.files, open_store, [&](const Store& store, Symbols& symbols) {
    const auto at = options.moment(store);
    if (!at) return Result<Table>(at.error());
    return analyze_table(store, symbols, {group_by(options.by), *at, options.only_device(), options.top});
  });
  if (!tables) return fail(tables.error().message);
  if (options.format == "json") return print(to_json(*tables));
  return print(options.format == "csv" ? to_csv(*tables) : join_texts(*tables, false));
}

}  // namespace

std::function<int()> setup_table(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_files(app, *options);
  add_format(app, *options, "text|json|csv");
  add_moment(app, *options);
  limit_to(*app.add_option("--by", options->by, "What makes a row"), "stack|size|device|thread|stream|pool|annotation");
  app.add_option("--top", options->top, "How many rows to list for each device; 0 = all")->type_name("N");
  app.footer(
      "Examples:\n"
      "  tidemark table run.tide\n"
      "  tidemark table run.tide --by size --at end\n"
      "  tidemark table run.tide --by thread --at 12.5s --format csv\n"
      "  tidemark table snapshot.pickle --by pool\n"
      "  tidemark table run.tide --by annotation --at backward@3");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
