// tidemark fragment: how much of what processes have reserved is fragmented.
#include <memory>

#include "cli/command.h"
#include "cli/watching.h"
#include "report/monitor/json.h"
#include "report/monitor/text.h"

namespace tidemark::cli {
namespace {

struct FragmentOptions : WatchOptions {};

int run(const FragmentOptions& options) {
  FragmentReport report;
  WatchHooks hooks;
  hooks.follow = true;
  hooks.window = window_of(options);
  hooks.at_end = [&](const RecordingsWatch& recordings) { report.of_recorded = recorded_fragmentation(recordings); };
  auto watched = watch(options, hooks);
  if (!watched) return fail(watched.error().message);
  static_cast<WatchRun&>(report) = std::move(*watched);
  return write_reports(options, report);
}

}  // namespace

std::function<int()> setup_fragment(CommandLine& app) {
  auto options = std::make_shared<FragmentOptions>();
  options->duration_seconds = 120;
  options->interval_seconds = 5;
  add_watching(app, *options, {.plot = true});
  app.footer(watching_footer(
      "Fragmentation is known of processes that are recorded with `tidemark run`: a driver knows what a process has, "
      "not how much of it its allocator can still give out. Of other processes it is n/a.",
      "  tidemark fragment --duration 120 --interval 5.0 --plot --output fragment.json"));
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
