#include "analyze/leaks/leaks.h"

#include <algorithm>
#include <memory>

#include "cli/reading.h"

namespace tidemark::cli {
namespace {

constexpr std::uint32_t kMostWarmup = 1'000'000'000;

struct Options : ReadingOptions {
  std::size_t top = 10;
  std::optional<std::uint32_t> warmup;
  bool fail_on_leak = false;
};

int run(const Options& options) {
  const auto results = analyze_files<Leaks>(options.files, open_store, [&](const Store& store, Symbols& symbols) {
    return analyze_leaks(store, symbols, {options.only_device(), options.top, options.warmup, {}});
  });
  if (!results) return fail(results.error().message);
  const int printed = print(options.format == "json" ? to_json(*results) : join_texts(*results, false));
  const bool leaks = std::any_of(results->begin(), results->end(),
                                 [](const Leaks& result) { return result.verdict == LeakVerdict::leak; });
  return printed == kOk && leaks && options.fail_on_leak ? kCheckFailed : printed;
}

}  // namespace

std::function<int()> setup_leaks(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_files(app, *options);
  add_format(app, *options, "text|json");
  app.add_option("--top", options->top, "How many stacks to list; 0 = all")->type_name("N");
  app.add_option("--warmup", options->warmup,
                 "How many steps may leave memory behind at the beginning (default: a tenth of them, at least 2)")
      ->check(CLI::Range(0U, kMostWarmup))
      ->type_name("N");
  app.add_flag("--fail-on-leak", options->fail_on_leak, "Exit with 1 when the verdict is leak");
  app.footer(
      "Examples:\n"
      "  tidemark leaks run.tide\n"
      "  tidemark leaks snapshot.pickle --warmup 20\n"
      "  tidemark leaks run.tide --format json --fail-on-leak");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
