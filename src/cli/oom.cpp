// tidemark oom: whether a device or the host runs out of memory, and when.
#include <memory>
#include <vector>

#include "cli/command.h"
#include "cli/watching.h"
#include "query/results/machine_results.h"
#include "query/words/monitors.h"
#include "report/common/text.h"

namespace tidemark::cli {
namespace {

struct OomOptions : WatchOptions {
  double threshold_percent = 85;
  bool monitor = false;
  bool duration_given = false;
};

int run(const OomOptions& options) {
  auto chosen = engine_options(options);
  if (!chosen) return fail(chosen.error().message);
  chosen->machine.forecast.threshold_percent = options.threshold_percent;
  int printed = kOk;
  WatchHooks hooks;
  hooks.endless = options.monitor && !options.duration_given;
  if (options.monitor && options.format == "text") {
    hooks.on_events = [&](const std::vector<MonitorEvent>& events) {
      for (const MonitorEvent& event : events) {
        if (event.risk && printed == kOk) printed = print(change_text(*event.risk) + "\n");
      }
    };
  }
  return watch_and_report(options, *chosen, &MonitorEngine::oom, hooks);
}

}  // namespace

std::function<int()> setup_oom(CommandLine& app) {
  auto options = std::make_shared<OomOptions>();
  options->duration_seconds = 300;
  app.add_option("--threshold", options->threshold_percent,
                 "Percent of the limit, from which on use alone is a medium risk")
      ->type_name("PERCENT");
  app.add_flag("--monitor", options->monitor,
               "Runs until stopped, or for --duration if given; prints one line per risk change");
  add_watching(app, *options, {});
  app.footer(watching_footer(
      "The limit is a device's memory, and the host's or that of the control group. The forecast is of the running "
      "peak: programs go up and down within a step and fail at the top. Growth that ends below the limit is no risk.\n"
      "\n"
      "low: no growth that would reach the limit; medium: above the threshold, or the limit is far; high: it is "
      "reached within ten minutes; critical: about to be reached.",
      "  tidemark oom --threshold 85 --monitor\n"
      "  tidemark oom --threshold 80 --duration 300 --output oom_report.json\n"
      "  tidemark oom --devices cpu --monitor"));
  return [options, &app] {
    options->duration_given = app.given("--duration");
    return run(*options);
  };
}

}  // namespace tidemark::cli
