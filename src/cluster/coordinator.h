// The coordinator of a job: takes the states of all nodes, and compares them. Also of a job on this machine alone, for
// which it needs no server.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/agent.h"
#include "cluster/bus.h"
#include "cluster/job.h"
#include "cluster/job_state.h"
#include "cluster/server.h"
#include "monitor/engine.h"

namespace tidemark {

struct CoordinatorOptions {
  std::string job;
  std::string node;                              ///< of this machine, which is watched too
  std::optional<ServerOptions> own_server = {};  ///< to be started
  std::optional<BusOptions> server = {};         ///< the site's; std::nullopt with none of both: this machine alone
};

/// One thread at a time, which has to live as long as this: see NatsServer.
class Coordinator {
 public:
  static Result<std::unique_ptr<Coordinator>> start(const CoordinatorOptions& options);

  /// Takes the messages that have come, and this machine's state. Call it after each tick of the engine, and several
  /// times a second. Returns the changes since the last call, at most once a second.
  std::vector<JobChange> update(const MonitorEngine& engine);
  /// The job now.
  [[nodiscard]] JobReport report() const;
  /// As all_devices().
  [[nodiscard]] MachineState devices(std::size_t most) const { return all_devices(job_, most); }
  void set_end(WatchEnd end) { end_ = end; }

 private:
  Coordinator(const CoordinatorOptions& options);
  void receive();
  void take(std::string_view token, std::string_view bytes);
  void send_own(const MonitorEngine& engine);
  [[nodiscard]] std::uint64_t now_ns() const;

  CoordinatorOptions options_;
  std::optional<NatsServer> server_;
  std::unique_ptr<Bus> bus_;
  JobState job_;
  AgentMessages own_;
  bool own_is_sent_ = true;  ///< false once another agent sends for this node
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::uint64_t began_wall_ns_ = 0;
  std::chrono::steady_clock::time_point compared_at_;
  std::optional<RiskLevel> level_;
  std::map<std::string, NodeCondition> conditions_;
  std::string refusal_;  ///< why a message was refused, the latest reason
  WatchEnd end_ = WatchEnd::not_yet;
};

}  // namespace tidemark
