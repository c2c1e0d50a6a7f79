// The agent of a node: sends the state of its machine's monitor to the job's coordinator.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/bus.h"
#include "cluster/event.h"
#include "cluster/event_watch.h"
#include "cluster/node_commands.h"
#include "cluster/rank_identity.h"
#include "cluster/state_sender.h"
#include "monitor/engine.h"

namespace tidemark {

/// The name of this machine (gethostname).
[[nodiscard]] std::string own_node_name();

/// Makes the messages of this machine, at most one a second. One thread at a time.
class AgentMessages {
 public:
  static constexpr std::chrono::milliseconds kEvery{1000};

  /// `job`: its name; `node`: this machine's name in it. Without ranks of other jobs: see RankIdentities.
  AgentMessages(const std::string& job, const std::string& node);

  /// An order of the coordinator to the ranks of this machine.
  void take(const CommandOrder& order, MonitorEngine& engine);
  [[nodiscard]] std::vector<CommandAnswer> take_answers() { return commands_.take_answers(); }
  /// After each tick of the engine: finds its events.
  void look(MonitorEngine& engine);
  /// What happened on this machine, until it has arrived.
  [[nodiscard]] EventOutbox& events() { return outbox_; }
  /// Whether the next one is due.
  [[nodiscard]] bool due() const;
  [[nodiscard]] std::string next(const MonitorEngine& engine);
  [[nodiscard]] std::string leave();
  /// See StateSender.
  void send_full_next() { sender_.send_full_next(); }
  [[nodiscard]] const StateSender& sender() const { return sender_; }

 private:
  [[nodiscard]] std::uint64_t elapsed_ns() const;

  static constexpr std::chrono::seconds kLeaksEvery{60};

  StateSender sender_;
  RankIdentities identities_;
  EventWatch watch_;
  EventOutbox outbox_;
  NodeCommands commands_;
  std::vector<RankIdentity> ranks_;  ///< at the latest message
  std::optional<std::uint64_t> looked_ns_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point next_ = began_;
  std::chrono::steady_clock::time_point next_leaks_ = began_ + kLeaksEvery;
};

/// Sends them over a connection. One thread at a time; no call waits for the network.
class Agent {
 public:
  /// `folder`: an existing one, for events that could not be sent when it is killed; empty: none.
  static Result<std::unique_ptr<Agent>> start(const BusOptions& server, const std::string& job, const std::string& node,
                                              const std::string& folder);
  /// Tells the coordinator that the node leaves, if it can be reached within half a second.
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  /// Call it after each tick of the engine.
  void update(MonitorEngine& engine);
  [[nodiscard]] bool is_connected() const { return bus_->is_connected(); }
  /// As Bus::problem().
  [[nodiscard]] std::string problem() const { return bus_->problem(); }

 private:
  Agent(std::unique_ptr<Bus> bus, const std::string& job, const std::string& node);
  void receive(MonitorEngine& engine);
  void send_events();

  std::unique_ptr<Bus> bus_;
  AgentMessages messages_;
  std::string job_;
  std::string subject_;
};

}  // namespace tidemark
