// tidemark fragment: the fragmentation of processes' reserved memory.
#include <memory>

#include "cli/command.h"
#include "cli/watching.h"
#include "query/results/machine_results.h"
#include "report/common/text.h"

namespace tidemark::cli {
namespace {

struct FragmentOptions : WatchOptions {};

int run(const FragmentOptions& options) {
  auto chosen = engine_options(options);
  if (!chosen) return fail(chosen.error().message);
  chosen->window = window_of(options);
  return watch_and_report(options, *chosen, &MonitorEngine::fragment);
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
