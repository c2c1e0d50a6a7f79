// The commands of analyses: each is an entry of the list in report/analyses, and made here alike.
#include "report/analyses/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "cli/reading.h"
#include "report/text/terminal.h"
#include "simulate/simulate.h"

namespace tidemark::cli {
namespace {

struct AnalysisArguments : ReadingOptions {
  explicit AnalysisArguments(const Analysis& what) : chosen(what.options) {}

  AnalysisOptions chosen;
  OwnerArguments owners;
};

Result<SampledOverview> open_sampled_overview(const std::string& path, const Progress& progress,
                                              const ComponentRules& rules) {
  LedgerCollector collector;
  HostUsageCollector host;
  auto overview = open_overview(path, progress, [&](const SampleRecord& sample, const EventsSoFar& events) {
    collector.add(sample, events);
    host.add(sample);
  });
  if (!overview) return overview.error();
  SampledOverview sampled;
  static_cast<Overview&>(sampled) = std::move(*overview);
  sampled.samples = std::move(collector).finish(sampled.last_event_ns);
  sampled.host = host.result();
  sampled.load_blocks = [path, rules] { return open_attributed(path, make_progress(path), rules); };
  sampled.owners = take_owners(path, rules, sampled);
  return sampled;
}

bool has_option(const Analysis& analysis, const char* name) {
  return std::any_of(analysis.options.begin(), analysis.options.end(),
                     [&](const AnalysisOption& option) { return option.name == name; });
}

// What --simulate says. Starting an interpreter takes seconds: unless asked to, only somebody at a terminal waits for
// it.
void choose_simulation(const Analysis& analysis, AnalysisArguments& options, bool to_terminal) {
  if (!has_option(analysis, "simulate")) return;
  const std::string& how = options.chosen.word("simulate");
  if (how == "off" || (how == "auto" && !to_terminal)) return;
  SimulateOptions what;
  what.search = true;
  what.device = options.only_device();
  what.replayer = how == "model" ? Replayer::model : Replayer::pytorch;
  const bool must = how != "auto";
  options.chosen.simulate = [what, must](const Store& store, const Symbols& symbols) -> std::optional<Simulation> {
    auto simulation = simulate(store, symbols, what, make_progress(store.path, "Replaying"));
    if (simulation) return std::move(*simulation);
    if (must) fail(simulation.error().message);
    return std::nullopt;
  };
}

int run(const Analysis& analysis, AnalysisArguments& options) {
  const auto format = output_format(options);
  if (!format) return fail(format.error().message);
  auto rules = read_rules(options.owners.rules);
  if (!rules) return fail(rules.error().message);
  options.chosen.rules = std::move(*rules);
  options.chosen.filter = options.owners.filter;
  options.chosen.device = options.only_device();
  options.chosen.at = options.at;
  options.chosen.format = *format;
  const bool to_stdout = options.output.empty() || options.output == "-";
  choose_simulation(analysis, options, to_stdout && *format == "text" && ::isatty(STDOUT_FILENO) != 0);
  const std::unique_ptr<AnalysisRun> results = analysis.start();
  const auto add = [&](const auto& recording, Symbols& symbols) {
    if constexpr (requires { recording.attribution; }) options.chosen.attribution = recording.attribution;
    return results->add(recording, symbols, options.chosen);
  };
  const auto open_blocks = [&](const std::string& path, const Progress& progress) {
    return open_attributed(path, progress, options.chosen.rules);
  };
  const auto open_samples = [&](const std::string& path, const Progress& progress) {
    return open_sampled_overview(path, progress, options.chosen.rules);
  };
  const auto added = analysis.needs_blocks ? read_files(options.files, open_blocks, add)
                                           : read_files(options.files, open_samples, add);
  if (!added) return fail(added.error().message);
  const auto bytes = results->write(*format, to_stdout ? detect_terminal(STDOUT_FILENO) : Terminal());
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
  add_reading(app, *options, {fmt::format("{}", fmt::join(analysis.formats, "|")), analysis.takes_moment});
  for (const AnalysisOption& option : analysis.options) add_option(app, option, options->chosen);
  if (analysis.takes_filter) add_owners(app, options->owners);
  app.footer(footer_of(analysis));
  return [options, &analysis] { return run(analysis, *options); };
}

}  // namespace tidemark::cli
