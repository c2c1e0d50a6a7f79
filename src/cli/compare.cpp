#include "analyze/compare.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/standard_streams.h"
#include "cli/reading.h"
#include "import/open.h"
#include "report/json/json.h"
#include "report/text/terminal.h"
#include "report/text/text.h"

namespace tidemark::cli {
namespace {

struct CompareArguments : ReadingOptions {
  std::string a;
  std::string b;
  std::string by = "peak";
  std::string group_by = "stack";
  OwnerArguments owners;
  std::string fail_over;
  bool ignore_lines = false;
  std::size_t top = CompareOptions().top;
};

std::uintmax_t size_of(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

CompareOptions what(const CompareArguments& options) {
  CompareOptions what;
  what.by = *value_in(kCompareByNames, options.by);
  what.ignore_lines = options.ignore_lines;
  what.device = options.only_device();
  what.top = options.top;
  if (!options.fail_over.empty()) what.budget = *parse_budget(options.fail_over);
  return what;
}

Result<ComparedRecording> reduce_one(AttributedStore&& store, const CompareArguments& options,
                                     const ComponentRules& rules) {
  AnalysisOptions chosen({by_option("stack")});
  chosen.set("by", options.group_by);
  chosen.filter = options.owners.filter;
  chosen.rules = rules;
  chosen.attribution = store.attribution;
  const auto holders = chosen.holders(store);
  if (!holders) return holders.error();
  ComparedRecording reduced = reduce_for_compare(std::move(store), *holders);
  reduced.chosen_blocks = filter_text(chosen.filter);
  return reduced;
}

int run(const CompareArguments& options) {
  for (const std::string& path : {options.a, options.b}) {
    if (auto fine = check_recording_path(path); !fine) return fail(fine.error().message);
  }
  // Both at once; the progress is that of the larger one.
  const bool a_is_larger = size_of(options.a) > size_of(options.b);
  const auto rules = read_rules(options.owners.rules);
  if (!rules) return fail(rules.error().message);
  const auto reduce = [&](Store&& opened) { return reduce_one(attribute(std::move(opened), *rules), options, *rules); };
  const auto [a, b] = open_both(options.a, options.b, reduce, a_is_larger ? make_progress(options.a) : Progress(),
                                a_is_larger ? Progress() : make_progress(options.b));
  if (!a) return fail(a.error().message);
  if (!b) return fail(b.error().message);
  Symbols symbols_a(a->overview.definitions);
  Symbols symbols_b(b->overview.definitions);
  const auto comparison = analyze_compare(*a, symbols_a, *b, symbols_b, what(options));
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
  app.add_option("--by", options->by, "Compare memory of each stack at the peak, or its allocations over time")
      ->one_of("peak|traffic");
  app.add_option("--group-by", options->group_by, "Compare stacks, or owners of memory")
      ->one_of(by_option("stack").value);
  app.add_flag("--ignore-lines", options->ignore_lines, "Match stacks by file and function, ignoring line numbers");
  app.add_option("--top", options->top, "Changes to list for each device; 0 = all")->type_name("N");
  app.add_option(
         "--fail-over", options->fail_over,
         "Exit with 1 when a device's peak allocated memory in B exceeds that in A by more than this: 5%, 100MiB")
      ->type_name("LIMIT")
      ->check([](const std::string& value) {
        const auto budget = parse_budget(value);
        return budget ? std::string() : budget.error().message;
      });
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
