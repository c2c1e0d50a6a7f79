#include "analyze/oom/explain.h"

#include <fmt/format.h>

#include <memory>

#include "analyze/budget.h"
#include "cli/reading.h"

namespace tidemark::cli {
namespace {

struct Options : ReadingOptions {
  std::size_t top = ExplainOptions().top;
  std::size_t failures = ExplainOptions().failures;
  std::string capacity;
};

std::string check_capacity(const std::string& text) {
  const auto size = parse_budget(text);
  if (size && !size->relative && size->amount != 0) return {};
  return fmt::format("'{}' is not a size: use bytes, or a size such as 80GiB", text);
}

int run(const Options& options) {
  ExplainOptions what;
  what.device = options.only_device();
  what.top = options.top;
  what.failures = options.failures;
  if (!options.capacity.empty()) what.capacity = parse_budget(options.capacity)->amount;
  const auto results = analyze_files<Explanation>(options.files, open_store, [&](const Store& store, Symbols& symbols) {
    return analyze_explain(store, symbols, what);
  });
  if (!results) return fail(results.error().message);
  return print(options.format == "json" ? to_json(*results) : join_texts(*results, false));
}

}  // namespace

std::function<int()> setup_explain(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_files(app, *options);
  add_format(app, *options, "text|json");
  app.add_option("--top", options->top, "How many holders to list for each failure; 0 = all")->type_name("N");
  app.add_option("--failures", options->failures,
                 "How many failures to explain, the latest first, equal ones as one; 0 = all")
      ->type_name("N");
  app.add_option("--capacity", options->capacity,
                 "What the device has in all (\"total capacity\" in PyTorch's message): shows what others use")
      ->check(CLI::Validator(check_capacity, ""))
      ->type_name("BYTES");
  app.footer(
      "Examples:\n"
      "  tidemark explain snapshot.pickle\n"
      "  tidemark explain snapshot.pickle --capacity 79.18GiB\n"
      "  tidemark explain run.tide --top 5 --failures 0\n"
      "  tidemark explain snapshot.pickle --format json | jq '.failures[0].cause'");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
