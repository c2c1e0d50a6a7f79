// tidemark exporter: exports metrics of the machine to Prometheus and OpenTelemetry, and does nothing else.
#include <memory>

#include "cli/command.h"
#include "cli/watching.h"

namespace tidemark::cli {
namespace {

constexpr const char* kAddress = "127.0.0.1:9400";

int run(WatchOptions options) {
  if (options.outputs.listen.empty() && options.outputs.otlp.empty()) options.outputs.listen = kAddress;
  auto chosen = engine_options(options);
  if (!chosen) return fail(chosen.error().message);
  chosen->window = RecordingsWatch::kOwnersWindow;  // it runs for weeks, and makes no report
  const auto status = watch(options, *chosen, {.endless = true});
  return status ? kOk : fail(status.error().message);
}

}  // namespace

std::function<int()> setup_exporter(CommandLine& app) {
  auto options = std::make_shared<WatchOptions>();
  add_choice(app, *options);
  add_outputs(app, options->outputs);
  app.footer(
      "Runs until it is stopped; without --listen and --otlp it listens at 127.0.0.1:9400. The other commands that "
      "watch a machine have the same options. Metrics have the names of OpenTelemetry's conventions, as far as there "
      "are "
      "any: docs/metrics.md lists them, share/tidemark/grafana/tidemark.json is a dashboard for them.\n\n"
      "Examples:\n"
      "  tidemark exporter\n"
      "  curl -s http://127.0.0.1:9400/metrics | grep tidemark_memory_risk_level\n"
      "  tidemark exporter --listen 0.0.0.0:9400 --listen-token-file token    (made by: openssl rand -hex 32)\n"
      "  tidemark exporter --otlp http://127.0.0.1:4318 --otlp-interval 15\n"
      "  tidemark exporter --on-critical 'mail -s \"GPU memory\" me' --history gpu.db");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
