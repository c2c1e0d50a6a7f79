// tidemark distributed: the older tools' command for a whole cluster. Its name and options are reserved until it is
// implemented.
#include <memory>
#include <string>

#include "cli/command.h"

namespace tidemark::cli {
namespace {

struct DistributedOptions {
  std::string role;
  std::string master_host;
  std::uint64_t port = 29500;
  double duration_seconds = 0;
};

constexpr const char* kNotThere =
    "distributed: watching a whole cluster is not there yet. On each node today: `tidemark exporter` for one "
    "Prometheus "
    "and dashboard of all, or `tidemark oom --monitor`; `tidemark summary *.tide` compares the ranks of a recorded job";

}  // namespace

std::function<int()> setup_distributed(CommandLine& app) {
  const auto options = std::make_shared<DistributedOptions>();
  app.add_option("--role", options->role, "What this node is")->one_of("master|worker");
  app.add_option("--master-host", options->master_host, "Where the master is; of a worker")->type_name("HOST");
  app.add_option("--port", options->port, "Where the master listens")->type_name("PORT");
  app.add_option("--duration", options->duration_seconds, "How long to watch: seconds, or 10min, 2h")
      ->seconds()
      ->show_default("until stopped");
  app.footer(
      "Not there yet: whatever the options, it says so and ends with exit code 2. The options are kept for it. What "
      "there is for the nodes of a cluster today: `exporter` on each, for one Prometheus; `oom --monitor --webhook` on "
      "each, which tells one place of risks; and `run` before `torchrun`, which makes a recording for each rank.\n\n"
      "Examples:\n"
      "  tidemark distributed --role master --port 29500      # not yet\n"
      "  tidemark exporter --listen 0.0.0.0:9400 --listen-token-file token\n"
      "  tidemark oom --monitor --webhook https://example.org/gpu-memory\n"
      "  tidemark run -- torchrun --nproc-per-node 8 train.py\n"
      "  tidemark summary train-*.tide                        # its ranks beside each other");
  return [options] { return fail(kNotThere); };
}

}  // namespace tidemark::cli
