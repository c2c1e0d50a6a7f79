// The commands of analyses: each is an entry of the list in query/analyses, and made here alike.
#include "query/analyses/analysis.h"

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <utility>

#include "cli/follow.h"
#include "cli/reading.h"
#include "query/recording.h"
#include "report/common/terminal.h"
#include "report/formats.h"

namespace tidemark::cli {
namespace {

struct AnalysisArguments : ReadingOptions {
  explicit AnalysisArguments(const Analysis& what) : chosen(what.options) {}

  AnalysisOptions chosen;
  OwnerArguments owners;
  FollowArguments follow;
  bool all = false;
  bool top_given = false;
};

int run(const Analysis& analysis, AnalysisArguments& options) {
  if (!options.follow.follow && options.follow.pid != 0) {
    return fail(fmt::format("--pid is for --follow: name a file; see `tidemark {} --help`", analysis.name));
  }
  const auto format = output_format(options);
  if (!format) return fail(format.error().message);
  auto rules = read_rules(options.owners.rules);
  if (!rules) return fail(rules.error().message);
  options.chosen.rules = std::move(*rules);
  options.chosen.filter = options.owners.filter;
  options.chosen.device = options.only_device();
  options.chosen.at = options.at;
  options.chosen.format = *format;
  if (options.follow.follow) {
    return follow({analysis, options.chosen, *format, options.output}, options.follow, options.files);
  }
  if (const auto chosen = choose_files(options.files); !chosen) return fail(chosen.error().message);
  const bool to_stdout = options.output.empty() || options.output == "-";
  const bool to_terminal = to_stdout && *format == "text" && ::isatty(STDOUT_FILENO) != 0;
  choose_simulation(analysis, to_terminal, make_progress, fail, options.chosen);
  const std::unique_ptr<AnalysisRun> results = analysis.start();
  const auto add = [&](const auto& recording, Symbols& symbols) {
    if constexpr (requires { recording.attribution; }) options.chosen.attribution = recording.attribution;
    return results->add(recording, symbols, options.chosen);
  };
  const auto open_blocks = [&](const std::string& path, const Progress& progress) {
    return open_attributed(path, progress, options.chosen.rules);
  };
  const auto open_samples = [&](const std::string& path, const Progress& /*it makes its own*/) {
    return open_sampled_overview(path, make_progress, options.chosen.rules);
  };
  const auto added = analysis.needs_blocks ? read_files(options.files, open_blocks, add)
                                           : read_files(options.files, open_samples, add);
  if (!added) return fail(added.error().message);
  Terminal terminal = to_stdout ? detect_terminal(STDOUT_FILENO) : Terminal();
  terminal.all = options.all;
  if (options.top_given) terminal.rows = std::numeric_limits<std::size_t>::max();  // as many as the result has
  const auto bytes = write_results(analysis, *results, *format, terminal);
  if (!bytes) return fail(bytes.error().message);
  const int written = write_output(options.output, *bytes);
  return written == kOk && results->check_failed(options.chosen) ? kCheckFailed : written;
}

std::string footer_of(const Analysis& analysis) {
  std::string text = analysis.about.empty() ? "Examples:" : analysis.about + "\n\nExamples:";
  for (const std::string& example : analysis.examples)
    text += fmt::format("\n  tidemark {} {}", analysis.name, example);
  return text;
}

}  // namespace

std::function<int()> setup_analysis(const Analysis& analysis, CommandLine& app) {
  auto options = std::make_shared<AnalysisArguments>(analysis);
  add_reading(app, *options, {fmt::format("{}", fmt::join(formats_of(analysis), "|")), analysis.takes_moment});
  for (const AnalysisOption& option : analysis.options) add_option(app, option, options->chosen);
  if (analysis.takes_filter) add_owners(app, options->owners);
  if (analysis.has_first_screen) {
    app.add_flag("--all", options->all, "Text: everything, not only what a first screen needs");
  }
  if (analysis.can_follow) add_follow(app, options->follow);
  app.footer(footer_of(analysis));
  return [options, &analysis, &app] {
    options->top_given = analysis.has_first_screen && app.given("--top");
    return run(analysis, *options);
  };
}

}  // namespace tidemark::cli
