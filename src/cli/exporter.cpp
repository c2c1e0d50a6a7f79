// tidemark exporter: nothing but metrics of the machine, for Prometheus and OpenTelemetry.
#include <memory>

#include "base/standard_streams.h"
#include "cli/command.h"
#include "cli/monitor_outputs.h"
#include "cli/watching.h"

namespace tidemark::cli {
namespace {

struct ExporterOptions : WatchOptions {
  OutputOptions outputs;
};

int run(ExporterOptions options) {
  if (options.outputs.listen.empty() && options.outputs.otlp.empty()) options.outputs.listen = "127.0.0.1:9400";
  const auto outputs = MonitorOutputs::start(options.outputs);
  if (!outputs) return fail(outputs.error().message);
  if (const std::string url = (*outputs)->url(); !url.empty()) say("metrics at " + url);
  WatchHooks hooks;
  hooks.endless = true;
  hooks.on_update = [&](const MachineMonitor& monitor) { (*outputs)->update(monitor); };
  const auto watched = watch(options, hooks);
  return watched ? kOk : fail(watched.error().message);
}

}  // namespace

std::function<int()> setup_exporter(CommandLine& app) {
  auto options = std::make_shared<ExporterOptions>();
  app.footer("x");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
