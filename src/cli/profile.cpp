// tidemark profile: how much memory devices and processes use over a while, from outside.
#include <memory>

#include "cli/command.h"
#include "cli/watching.h"
#include "query/results/machine_results.h"
#include "report/common/text.h"

namespace tidemark::cli {
namespace {

struct ProfileOptions : WatchOptions {};

int run(const ProfileOptions& options) {
  const auto chosen = engine_options(options);
  if (!chosen) return fail(chosen.error().message);
  return watch_and_report(options, *chosen, &MonitorEngine::profile);
}

}  // namespace

std::function<int()> setup_profile(CommandLine& app) {
  auto options = std::make_shared<ProfileOptions>();
  add_watching(app, *options, {.plot = true});
  app.footer(watching_footer(
      "Reads what the driver reports of each device and its processes, and the host's memory. Peaks are those of the "
      "samples; where programs are being recorded with `tidemark run`, those of a device also have what these took of "
      "it between two samples, and their allocated and reserved bytes are there, with the true peaks.",
      "  tidemark profile --duration 60 --output profile.json --plot\n"
      "  tidemark profile --devices 0 1 --interval 0.1\n"
      "  tidemark profile --pid 4242 --duration 3600 --output job.json"));
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
