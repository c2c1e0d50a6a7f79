// The commands of analyses: each is an entry of the list in report/analyses, and made here alike.
#include "report/analyses/analysis.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "cli/reading.h"
#include "report/text/terminal.h"

namespace tidemark::cli {
namespace {

struct AnalysisArguments : ReadingOptions {
  explicit AnalysisArguments(const Analysis& what) : chosen(what.options) {}

  AnalysisOptions chosen;
};

Result<SampledOverview> open_sampled_overview(const std::string& path, const Progress& progress) {
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
  sampled.load_blocks = [path] { return open_store(path, make_progress(path)); };
  return sampled;
}

int run(const Analysis& analysis, AnalysisArguments& options) {
  const auto format = output_format(options);
  if (!format) return fail(format.error().message);
  options.chosen.device = options.only_device();
  options.chosen.at = options.at;
  options.chosen.format = *format;
  const std::unique_ptr<AnalysisRun> results = analysis.start();
  const auto add = [&](const auto& recording, Symbols& symbols) {
    return results->add(recording, symbols, options.chosen);
  };
  const auto added = analysis.needs_blocks ? read_files(options.files, open_store, add)
                                           : read_files(options.files, open_sampled_overview, add);
  if (!added) return fail(added.error().message);
  const bool to_stdout = options.output.empty() || options.output == "-";
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
  app.footer(footer_of(analysis));
  return [options, &analysis] { return run(analysis, *options); };
}

}  // namespace tidemark::cli
