#include "cli/job_connection.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "cluster/agent.h"
#include "cluster/protocol.h"
#include "cluster/rank_identity.h"
#include "collect/machine/files.h"
#include "http/endpoint.h"

namespace tidemark::cli {
namespace {

constexpr const char* kAddressFile = "/address";

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

}  // namespace

std::string default_job() {
  for (const JobVariable& variable : kJobVariables) {
    const char* value = variable.is_batch_system ? std::getenv(variable.name) : nullptr;
    if (value != nullptr && *value != '\0') return clean_name(value);
  }
  return "default";
}

Result<std::string> state_folder(const JobConnection& options) {
  return options.state.empty() ? default_state(options.job) : Result<std::string>(options.state);
}

Result<std::string> make_state_folder(const JobConnection& options) {
  auto folder = state_folder(options);
  if (!folder) return folder;
  std::error_code error;
  std::filesystem::create_directories(*folder, error);
  if (!error) std::filesystem::permissions(*folder, std::filesystem::perms::owner_all, error);
  if (error) return Error{fmt::format("{}: cannot be used: {}", *folder, error.message())};
  return std::filesystem::absolute(*folder).string();
}

BusOptions site_server(const JobConnection& options) {
  BusOptions server;
  server.url = options.nats;
  server.credentials = options.credentials;
  if (const char* token = std::getenv(kTokenVariable); token != nullptr) server.password = token;
  return server;
}

Result<std::string> environment_key(const JobConnection& options) {
  constexpr std::size_t kMinLetters = 16;
  const char* token = std::getenv(kTokenVariable);
  if (token == nullptr || *token == '\0' || !options.token_file.empty()) return std::string();
  if (std::string_view(token).size() < kMinLetters) {
    return Error{fmt::format("{}: too short a key (expected {} letters or more)", kTokenVariable, kMinLetters)};
  }
  return std::string(token);
}

namespace {

// The key that the master has made: given, or in the state folder, which machines with one home share.
Result<JobKey> client_key(const JobConnection& options) {
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

}  // namespace

Result<BusOptions> client_server(const JobConnection& options, const std::string& name) {
  BusOptions server = site_server(options);
  if (options.nats.empty()) {
    const auto key = client_key(options);
    if (!key) return key.error();
    const auto certificate = server_certificate(*key);
    if (!certificate) return certificate.error();
    const bool six = options.master_host.find(':') != std::string::npos;
    const char* open = six ? "[" : "";
    const char* close = six ? "]" : "";
    server.url = fmt::format("nats://{}{}{}:{}", open, options.master_host, close, options.port);
    server.password = key->password();
    server.certificate = certificate->certificate;
  }
  server.name = "tidemark " + name;
  return server;
}

std::string server_place(const JobConnection& options) {
  return options.nats.empty() ? fmt::format("{}:{}", options.master_host, options.port) : options.nats;
}

void write_address(const std::string& folder, const std::string& host, std::uint64_t port) {
  std::ofstream(folder + kAddressFile) << host << ' ' << port << '\n';
}

void find_master(JobConnection& options, bool port_given) {
  if (!options.nats.empty() || !options.master_host.empty()) return;
  const auto folder = state_folder(options);
  const std::string text = folder ? trimmed(read_file(*folder + kAddressFile).value_or("")) : "";
  const std::size_t space = text.find(' ');
  std::uint64_t port = 0;
  const bool known = space != std::string::npos &&
                     std::from_chars(text.data() + space + 1, text.data() + text.size(), port).ec == std::errc();
  options.master_host = known ? clean_name(text.substr(0, space)) : "127.0.0.1";
  if (options.master_host == own_node_name()) options.master_host = "127.0.0.1";
  if (known && !port_given) options.port = port;
}

Result<void> complete(JobConnection& options) {
  if (options.job.empty()) options.job = default_job();
  options.job = clean_name(options.job);
  if (options.port == 0 || options.port > 65'535) {
    return Error{fmt::format("--port {}: expected 1 to 65535", options.port)};
  }
  if (!options.credentials.empty() && options.nats.empty()) return Error{"--creds: for the server of --nats URL"};
  return {};
}

void add_job(CommandLine& app, JobConnection& options) {
  app.add_option("--job", options.job, "Name of the job, the same on all its nodes")
      ->type_name("NAME")
      ->show_default("the batch system's number, else default");
}

void add_master(CommandLine& app, JobConnection& options, const std::string& host_description) {
  app.add_option("--master-host", options.master_host, host_description)->type_name("HOST");
  app.add_option("--port", options.port, "Where the master listens")->type_name("PORT");
}

void add_server_and_key(CommandLine& app, JobConnection& options, const std::string& state_description) {
  app.group("Server and key");
  app.add_option("--state", options.state, state_description)->type_name("DIR")->show_default("below ~/.local/state");
  app.add_option("--token-file", options.token_file, "File of the job's key; or TIDEMARK_JOB_TOKEN")
      ->type_name("FILE")
      ->show_default("key in --state");
  app.add_option("--nats", options.nats, "Use this NATS server of the site: nats://HOST:4222 or tls://HOST:4222")
      ->type_name("URL");
  app.add_option("--creds", options.credentials, "Credentials for it, a file made by nsc")->type_name("FILE");
}

}  // namespace tidemark::cli
