// tidemark leak: which memory grows during monitoring, and how fast.
#include <memory>

#include "base/units.h"
#include "cli/command.h"
#include "cli/watching.h"
#include "query/results/machine_results.h"
#include "report/common/text.h"

namespace tidemark::cli {
namespace {

struct LeakOptions : WatchOptions {
  double threshold_mib_per_minute = 10;
  bool tracking = false;
};

int run(const LeakOptions& options, const CommandLine& app) {
  for (const char* const option : {"--pid", "--duration"}) {
    if (!options.program.empty() && app.given(option)) {
      return fail(std::string(option) + ": a PROGRAM is watched from its start to its end");
    }
  }
  auto chosen = engine_options(options);
  if (!chosen) return fail(chosen.error().message);
  chosen->leak_bytes_per_minute = options.threshold_mib_per_minute * static_cast<double>(kMiB);
  chosen->tracking = chosen->objects = options.tracking;
  // A program that is started here has no other end than its own.
  if (options.tracking) chosen->window = options.program.empty() ? window_of(options) : kReportWindow;
  return watch_and_report(options, *chosen, &MonitorEngine::leak);
}

}  // namespace

std::function<int()> setup_leak(CommandLine& app) {
  auto options = std::make_shared<LeakOptions>();
  options->duration_seconds = 600;
  app.add_option("--threshold", options->threshold_mib_per_minute, "MB (2^20 bytes) per minute that are reported")
      ->type_name("MB");
  app.add_flag("--enable-tracking", options->tracking,
               "Also say which stacks and modules grow, of processes that are recorded with `tidemark run`, and who "
               "holds what is "
               "new in Python programs, each of which this holds up for a second or more");
  add_watching(app, *options, {});
  app.add_option("PROGRAM", options->program,
                 "Start this program with its arguments, record it, and watch it to its end");
  app.ends_with_a_program();
  app.footer(watching_footer(
      "Growth is what stays, with its 95% interval, of devices, processes, the host, and of what the framework has "
      "allocated in programs that are being recorded: a warm-up, a sawtooth and a change to a new level are not. From "
      "samples alone it takes a minute and a half to tell; of a recorded program whose training steps are known, a "
      "dozen "
      "steps. Seen from outside, growth has no cause; --enable-tracking names the lines of a recorded program.",
      "  tidemark leak --threshold 10 --duration 600 --output leak_report.json\n"
      "  tidemark leak --threshold 10 --enable-tracking --pid 4242\n"
      "  tidemark leak --enable-tracking -- python train.py"));
  return [options, &app] { return run(*options, app); };
}

}  // namespace tidemark::cli
