#include "analyze/usage/compare.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/standard_streams.h"
#include "cli/reading.h"
#include "import/open.h"
#include "query/comparison.h"
#include "query/results/results.h"
#include "report/common/terminal.h"
#include "report/common/text.h"

namespace tidemark::cli {
namespace {

struct CompareArguments : ReadingOptions {
  std::string a;
  std::string b;
  AnalysisOptions chosen{compare_options()};
  OwnerArguments owners;
};

std::uintmax_t size_of(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

int run(CompareArguments& options) {
  for (const std::string& path : {options.a, options.b}) {
    if (auto status = check_recording_path(path); !status) return fail(status.error().message);
  }
  // Reads both at once; shows the progress of the larger one.
  const bool a_is_larger = size_of(options.a) > size_of(options.b);
  auto rules = read_rules(options.owners.rules);
  if (!rules) return fail(rules.error().message);
  AnalysisOptions& chosen = options.chosen;
  chosen.rules = std::move(*rules);
  chosen.filter = options.owners.filter;
  chosen.device = options.only_device();
  const auto reduce = [&](Store&& opened) { return reduce_chosen(attribute(std::move(opened), chosen.rules), chosen); };
  const auto [a, b] = open_both(options.a, options.b, reduce, a_is_larger ? make_progress(options.a) : Progress(),
                                a_is_larger ? Progress() : make_progress(options.b));
  if (!a) return fail(a.error().message);
  if (!b) return fail(b.error().message);
  Symbols symbols_a(a->overview.definitions);
  Symbols symbols_b(b->overview.definitions);
  const auto comparison = analyze_compare(*a, symbols_a, *b, symbols_b, compare_what(chosen));
  if (!comparison) return fail(comparison.error().message);
  const int printed =
      print(options.format == "json" ? to_json(*comparison) : to_text(*comparison, detect_terminal(STDOUT_FILENO)));
  if (printed != kOk || !comparison->budget) return printed;
  if (comparison->checked_devices == 0) {
    return fail(fmt::format("--fail-over: no device of {} can be compared with {}", options.b, options.a));
  }
  if (comparison->over_budget.empty()) return kOk;
  say(budget_text(*comparison));
  return kCheckFailed;
}

}  // namespace

std::function<int()> setup_compare(CommandLine& app) {
  auto options = std::make_shared<CompareArguments>();
  app.add_option("A", options->a, "Recording or PyTorch memory snapshot to compare with")
      ->required()
      ->type_name("FILE");
  app.add_option("B", options->b, "Recording or PyTorch memory snapshot to compare")->required()->type_name("FILE");
  add_device(app, options->device);
  add_format(app, options->format, "text|json");
  for (const AnalysisOption& option : compare_options()) add_option(app, option, options->chosen);
  add_owners(app, options->owners);
  app.footer(
      "Examples:\n"
      "  tidemark compare yesterday.tide today.tide\n"
      "  tidemark compare before.pickle after.pickle --by traffic --ignore-lines\n"
      "  tidemark compare yesterday.tide today.tide --group-by category\n"
      "  tidemark compare baseline.tide run.tide --fail-over 5%");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
