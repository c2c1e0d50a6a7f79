// The coordinator of a job: takes the states of all nodes, and compares them. Also of a job on this machine alone, for
// which it needs no server.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cluster/agent.h"
#include "cluster/bus.h"
#include "cluster/command.h"
#include "cluster/command_round.h"
#include "cluster/event.h"
#include "cluster/event_stream.h"
#include "cluster/job.h"
#include "cluster/job_records.h"
#include "cluster/job_state.h"
#include "cluster/server.h"
#include "monitor/engine.h"

namespace tidemark {

struct CoordinatorOptions {
  std::string job;
  std::string node;                              ///< of this machine, which is watched too
  std::optional<ServerOptions> own_server = {};  ///< to be started
  std::optional<BusOptions> server = {};         ///< the site's; std::nullopt with none of both: this machine alone
  std::string folder = {};                       ///< an existing one for the records of the job; empty: none are kept
};

/// One thread at a time, which has to live as long as this: see NatsServer.
class Coordinator {
 public:
  static Result<std::unique_ptr<Coordinator>> start(const CoordinatorOptions& options);

  /// Takes the messages that have come, and this machine's state. Call it after each tick of the engine, and several
  /// times a second. Returns the changes since the last call; those of nodes and of the risk at most once a second.
  std::vector<JobChange> update(MonitorEngine& engine);
  /// The job now.
  [[nodiscard]] JobReport report() const;
  /// As all_devices().
  [[nodiscard]] MachineState devices(std::size_t most) const { return all_devices(job_, most); }
  void set_end(WatchEnd end) { end_ = end; }

 private:
  Coordinator(const CoordinatorOptions& options);
  void receive();
  void take_request(std::string_view bytes);
  void take_command(std::string_view bytes);
  void take_acknowledgement(const BusMessage& message);
  void run_command(MonitorEngine& engine);
  void finish(const CommandRound& round);
  void answer(std::uint64_t id, std::string_view bytes);
  void answer_requests();
  void take(std::string_view token, std::string_view bytes);
  void send_own(MonitorEngine& engine);
  void take_event(const BusMessage& message);
  void add_events(std::vector<JobChange>& changes);
  void compare(std::vector<JobChange>& changes);
  [[nodiscard]] std::uint64_t now_ns() const;

  CoordinatorOptions options_;
  std::optional<NatsServer> server_;
  std::unique_ptr<Bus> bus_;
  EventStream stream_;
  JobRecords records_;
  std::string records_problem_;  ///< why they are not kept
  JobState job_;
  AgentMessages own_;
  bool own_is_sent_ = true;  ///< false once another agent sends for this node
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::uint64_t began_wall_ns_ = 0;
  std::chrono::steady_clock::time_point compared_at_;
  std::optional<RiskLevel> level_;
  std::map<std::string, NodeCondition> conditions_;
  std::vector<EventMessage> events_;                              ///< not taken yet
  std::vector<std::string> delivered_;                            ///< where that they are taken is said to the stream
  std::vector<std::uint64_t> requests_;                           ///< for the report, to be answered
  std::optional<CommandRound> round_;                             ///< the command that is being carried out
  std::deque<std::pair<std::uint64_t, CommandReport>> finished_;  ///< the latest commands, for programs that ask again
  std::string refusal_;                                           ///< why a message was refused, the latest reason
  WatchEnd end_ = WatchEnd::not_yet;
};

}  // namespace tidemark
