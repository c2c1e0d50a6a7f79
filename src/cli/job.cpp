// tidemark job: the report of a job that a coordinator is watching.
#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/job_connection.h"
#include "cli/reading.h"
#include "cluster/agent.h"
#include "cluster/job_client.h"
#include "cluster/job_key.h"
#include "query/results/machine_results.h"
#include "query/words/printable.h"
#include "report/common/terminal.h"
#include "report/common/text.h"

namespace tidemark::cli {
namespace {

struct JobOptions : JobConnection {
  std::string command;
  std::string ranks;
  std::string format = "text";
  bool port_given = false;
};

Result<JobClient> connect(const JobOptions& options) {
  const auto server = client_server(options, "job");
  if (!server) return server.error();
  auto client = JobClient::connect(*server, options.job);
  if (client) return client;
  return Error{fmt::format(
      "no connection to the server of job {} at {} ({}): start one with `tidemark distributed --role master`, or name "
      "the master with --master-host HOST and --port PORT",
      options.job, server_place(options), client.error().message)};
}

Result<std::vector<std::uint32_t>> ranks_in(std::string_view text) {
  std::vector<std::uint32_t> ranks;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    std::uint32_t rank = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), rank);
    if (error != std::errc() || end != word.data() + word.size()) {
      return Error{fmt::format("--ranks: {}: not a rank (expected numbers with commas, such as 0,3)", word)};
    }
    ranks.push_back(rank);
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return ranks;
}

// For the records of the job.
std::string own_name() {
  const passwd* user = ::getpwuid(::getuid());
  return fmt::format("{} on {}", user == nullptr ? std::to_string(::getuid()) : user->pw_name, own_node_name());
}

int no_answer(const JobOptions& options, const std::string& reason) {
  return fail(fmt::format(
      "the server of job {} at {} is there, but {}: is `tidemark distributed --role master` running, with this name of "
      "the job (--job)?",
      options.job, server_place(options), reason));
}

int run_command(const JobOptions& options, const std::vector<std::uint32_t>& ranks, JobClient& client) {
  const auto report = client.run({random_number(), options.command, ranks, own_name()});
  if (!report) return no_answer(options, report.error().message);
  const int printed =
      print(options.format == "json" ? to_json(*report) : to_text(*report, detect_terminal(STDOUT_FILENO)));
  return printed == kOk && report->state != CommandState::done ? kCheckFailed : printed;
}

int run(JobOptions options) {
  if (auto status = complete(options); !status) return fail(status.error().message);
  const auto ranks = ranks_in(options.ranks);
  if (!ranks) return fail(ranks.error().message);
  if (!ranks->empty() && options.command.empty()) return fail("--ranks: of a --command");
  find_master(options, options.port_given);
  auto client = connect(options);
  if (!client) return fail(client.error().message);
  if (!options.command.empty()) return run_command(options, *ranks, *client);
  const auto report = client->report();
  if (!report) return no_answer(options, report.error().message);
  return print(options.format == "json" ? to_json(*report) : to_text(*report, detect_terminal(STDOUT_FILENO)));
}

}  // namespace

std::function<int()> setup_job(CommandLine& app) {
  const auto options = std::make_shared<JobOptions>();
  add_job(app, *options);
  add_master(app, *options, "Where the master is; without it, where the job's folder says, else this machine");
  app.add_option("--command", options->command, "Give this command to the job's ranks, instead of the report")
      ->one_of("record dump");
  app.add_option("--ranks", options->ranks, "Only to these ranks: numbers with commas")
      ->type_name("RANKS")
      ->show_default("all");
  add_format(app, options->format, "text|json");
  add_server_and_key(app, *options, "Folder of the job's key");
  app.footer(
      "Asks the master of a job (tidemark distributed --role master) for its report now: the screen and JSON of "
      "`tidemark distributed`.\n"
      "--command \"record dump\": the flight recorders of all ranks (tidemark run --keep) write what they have, or "
      "none: it is refused, with exit code 1, if a rank cannot or an agent does not answer. Also 1: a rank has not "
      "done it.\n\n"
      "Examples:\n"
      "  tidemark job                        # of this batch job, else the job `default`\n"
      "  tidemark job --job 4711 --format json\n"
      "  tidemark job --master-host node0 --port 29501\n"
      "  tidemark job --command \"record dump\" --ranks 0,3");
  return [options, &app] {
    options->port_given = app.given("--port");
    return run(*options);
  };
}

}  // namespace tidemark::cli
