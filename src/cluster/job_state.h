// The states of a job's nodes, kept from the messages of their agents. Messages may come twice, late, in another order,
// or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/protocol.h"
#include "monitor/state_codec.h"

namespace tidemark {

/// How old an agent's latest state is, without comparing the clocks of two machines: the least delay of its messages
/// relates the agent's elapsed time to the receiver's clock. So a message that a broken connection held back is known
/// to be old when it comes. The least delay is of the last five to ten minutes, because clocks drift.
class ReceiverClock {
 public:
  void take(std::uint64_t elapsed_ns, std::uint64_t received_ns);
  /// Undefined before the first take().
  [[nodiscard]] std::uint64_t age_ns(std::uint64_t elapsed_ns, std::uint64_t now_ns) const;

 private:
  std::int64_t least_ = 0;   ///< received - elapsed, in this window
  std::int64_t before_ = 0;  ///< in the window before
  std::optional<std::uint64_t> window_began_ns_;
};

/// Steps of one process over the last two minutes.
class StepPace {
 public:
  void take(std::uint64_t elapsed_ns, std::uint64_t steps);
  [[nodiscard]] std::optional<std::uint64_t> steps() const;
  /// The mean duration of a step; std::nullopt below three steps.
  [[nodiscard]] std::optional<double> seconds() const;

 private:
  struct Seen {
    std::uint64_t elapsed_ns = 0;
    std::uint64_t steps = 0;
  };
  std::deque<Seen> seen_;  // one for each count of steps
};

struct NodeState {
  std::string name;
  std::uint64_t instance = 0;  ///< of the agent whose messages count
  StateDecoder decoder;
  std::vector<RankIdentity> ranks;
  std::map<std::int64_t, StepPace> steps;  ///< by PID
  bool left = false;                       ///< its agent was stopped
  std::uint64_t state_bytes = 0;           ///< of the largest full message
  // Counters of messages.
  std::uint64_t taken = 0;
  std::uint64_t lost = 0;      ///< between those that were taken
  std::uint64_t repeated = 0;  ///< duplicates, and late ones
  std::uint64_t refused = 0;   ///< damaged, or too many at a time

  [[nodiscard]] std::uint64_t age_ns(std::uint64_t now_ns) const { return clock.age_ns(elapsed_ns, now_ns); }
  /// Whether another agent sends for the same name at the same time.
  [[nodiscard]] bool has_rival(std::uint64_t now_ns) const;

  ReceiverClock clock;
  std::uint64_t elapsed_ns = 0;  ///< the agent's, at the state
  std::uint64_t sequence = 0;    ///< of the latest message that was taken
  std::uint64_t heard_ns = 0;    ///< when that came
  std::optional<std::uint64_t> asked_ns;
  std::vector<std::uint64_t> former;      ///< instances that were replaced, latest last
  std::optional<std::uint64_t> rival_ns;  ///< when a replaced one last sent
  double allowed = kBurst;                ///< messages it may send now
  std::uint64_t allowed_at_ns = 0;

  static constexpr double kBurst = 16;
};

/// One thread at a time. Times are of the receiver's steady clock. Messages are hostile input: bounded are their sizes,
/// the nodes, and each node's rate.
class JobState {
 public:
  static constexpr std::size_t kMaxNodes = 16'384;
  static constexpr std::uint64_t kMaxTotalBytes = std::uint64_t{512} << 20;  ///< of the nodes' full messages
  static constexpr double kMaxRate = 4;                                      ///< messages of a node in a second
  /// A state of this age is old: its machine, its agent or the network may be gone.
  static constexpr std::uint64_t kOldNs = 5'000'000'000;

  struct Taken {
    bool accepted = false;
    std::string ask = {};      ///< the node to be asked for a full state; empty: none
    std::string problem = {};  ///< why the message was refused, as a clause; empty: it was not, or is only late
  };
  /// `token`: the last part of the message's subject, which has to be the node's.
  Taken take(std::string_view token, std::string_view message, std::uint64_t now_ns);

  /// By name.
  [[nodiscard]] const std::map<std::string, NodeState>& nodes() const { return nodes_; }
  /// Messages that belong to no node: damaged, or of too many nodes.
  [[nodiscard]] std::uint64_t refused() const { return refused_; }

 private:
  Taken refuse(NodeState* node, std::string problem);
  Taken ask(NodeState& node, std::uint64_t now_ns);
  /// Whether messages of this instance count from now on.
  [[nodiscard]] bool choose(NodeState& node, const AgentMessage& message, std::uint64_t now_ns);

  std::map<std::string, NodeState> nodes_;
  std::uint64_t total_bytes_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace tidemark
