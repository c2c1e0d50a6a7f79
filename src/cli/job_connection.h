// How commands reach a job: its name, its server, its key and its folder.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "cli/command_line.h"
#include "cluster/bus.h"
#include "cluster/job_key.h"

namespace tidemark::cli {

inline constexpr const char* kTokenVariable = "TIDEMARK_JOB_TOKEN";

struct JobConnection {
  std::string job;
  std::string master_host;
  std::uint64_t port = 29500;
  std::string state;
  std::string token_file;
  std::string nats;
  std::string credentials;
};

void add_job(CommandLine& app, JobConnection& options);
void add_master(CommandLine& app, JobConnection& options, const std::string& host_description);
void add_server_and_key(CommandLine& app, JobConnection& options, const std::string& state_description);
/// Fills in the default name of the job; fails for what does not fit together.
Result<void> complete(JobConnection& options);

/// The number that a batch system gives to a job, the same on all its nodes; else "default".
std::string default_job();
/// The job's folder; it need not exist.
Result<std::string> state_folder(const JobConnection& options);
/// The same, created for its owner only; absolute.
Result<std::string> make_state_folder(const JobConnection& options);

/// The key in the environment, unless a file is named; empty: none.
Result<std::string> environment_key(const JobConnection& options);
/// The site's.
BusOptions site_server(const JobConnection& options);
/// The job's, for a program that the master is not. `name`: what it is, for the server's log.
Result<BusOptions> client_server(const JobConnection& options, const std::string& name);
/// "node0:29500", or the site's URL.
std::string server_place(const JobConnection& options);

/// Leaves in the job's folder where its master is, for commands that do not name it.
void write_address(const std::string& folder, const std::string& host, std::uint64_t port);
/// Sets the master's host and port from there, unless they are given; else this machine.
void find_master(JobConnection& options, bool port_given);

}  // namespace tidemark::cli
