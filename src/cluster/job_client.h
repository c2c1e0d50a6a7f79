// A program that asks the coordinator of a job.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
#include "cluster/bus.h"
#include "cluster/command.h"
#include "cluster/job_report.h"

namespace tidemark {

/// One thread at a time. Calls wait for the network, if not said otherwise at most kPatience.
class JobClient {
 public:
  static constexpr std::chrono::seconds kPatience{6};
  static constexpr std::chrono::seconds kCommandPatience{75};

  /// The error is a clause: why there is no connection.
  static Result<JobClient> connect(const BusOptions& server, const std::string& job);

  /// The job now. The error is a clause.
  Result<JobReport> report();
  /// Gives a command to its ranks, and waits for their answers, at most kCommandPatience. The error is a clause.
  Result<CommandReport> run(const CommandRequest& request);

 private:
  JobClient(std::unique_ptr<Bus> bus, std::string job);
  /// Publishes the question until all parts of an answer are there.
  Result<std::string> ask(const std::string& subject, const std::string& question, std::uint64_t id,
                          std::chrono::seconds patience);

  std::unique_ptr<Bus> bus_;
  std::string job_;
};

}  // namespace tidemark
