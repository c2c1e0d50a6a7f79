// The commands that an agent carries out for the ranks of its node.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/command.h"
#include "cluster/rank_identity.h"
#include "monitor/engine.h"

namespace tidemark {

/// One thread at a time. No call waits.
class NodeCommands {
 public:
  using Clock = std::chrono::steady_clock;
  /// An order to commit that comes later than this after its preparation is not followed.
  static constexpr std::chrono::seconds kPrepared{10};
  /// Without an answer of a recorder.
  static constexpr std::chrono::seconds kPatience{50};
  static constexpr std::size_t kMaxRounds = 16;

  explicit NodeCommands(std::string node) : node_(std::move(node)) {}

  /// `ranks`: the job's on this node. An order that comes twice is followed once.
  void take(const CommandOrder& order, MonitorEngine& engine, const std::vector<RankIdentity>& ranks,
            Clock::time_point now);
  /// The engine's events of one tick: dumps that were asked for.
  void take_events(const std::vector<MonitorEvent>& events);
  void update(Clock::time_point now);
  [[nodiscard]] std::vector<CommandAnswer> take_answers() { return std::exchange(answers_, {}); }

 private:
  struct Round {
    CommandOrder order;
    Clock::time_point deadline;
    bool is_committed = false;
    std::vector<CommandRank> ranks;
    std::map<std::string, std::set<std::int64_t>> waiting;  // PIDs by the request to their recorder
  };
  void prepare(const CommandOrder& order, const MonitorEngine& engine, const std::vector<RankIdentity>& ranks,
               Clock::time_point now);
  void commit(Round& round, MonitorEngine& engine, Clock::time_point now);
  void answer(const Round& round, CommandPhase phase);

  std::string node_;
  std::map<std::uint64_t, Round> rounds_;
  std::vector<CommandAnswer> answers_;
};

}  // namespace tidemark
