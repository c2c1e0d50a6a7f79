#include "analyze/tree.h"

#include <charconv>
#include <memory>

#include "cli/reading.h"

namespace tidemark::cli {
namespace {

struct Options : ReadingOptions {
  std::size_t depth = TreeOptions::kMaxDepth;
  std::string min_share = "1%";
  bool by_count = false;
};

// "1%" or "0.01"; below 0 when it is neither.
double parse_share(const std::string& text) {
  double number = -1;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const bool percent = rest + 1 == end && *rest == '%';
  if (error != std::errc() || (rest != end && !percent)) return -1;
  if (percent) number /= 100;
  return number >= 0 && number <= 1 ? number : -1;
}

int run(const Options& options) {
  const auto trees = analyze_files<Tree>(options.files, open_store, [&](const Store& store, Symbols& symbols) {
    const auto at = options.moment(store);
    if (!at) return Result<Tree>(at.error());
    return analyze_tree(store, symbols,
                        {*at, options.only_device(), options.depth, parse_share(options.min_share), options.by_count});
  });
  if (!trees) return fail(trees.error().message);
  return print(options.format == "json" ? to_json(*trees) : join_texts(*trees, false));
}

}  // namespace

std::function<int()> setup_tree(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_files(app, *options);
  add_format(app, *options, "text|json");
  add_moment(app, *options);
  app.add_option("--depth", options->depth, "List so many levels of callers")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{1}, TreeOptions::kMaxDepth));
  app.add_option("--min-share", options->min_share, "Leave out callers that hold less than this, such as 1% or 0")
      ->type_name("SHARE")
      ->check(CLI::Validator(
          [](const std::string& value) {
            return parse_share(value) >= 0 ? std::string() : "'" + value + "' is not a share such as 1% or 0.01";
          },
          ""));
  app.add_flag("--by-count", options->by_count, "Order and shares by number of blocks instead of bytes");
  app.footer(
      "Examples:\n"
      "  tidemark tree run.tide\n"
      "  tidemark tree run.tide --at end --min-share 0 --depth 12\n"
      "  tidemark tree run.tide --by-count --device cpu");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
