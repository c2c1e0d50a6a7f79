// One command to a job's ranks, as the coordinator carries it out: all agents are asked whether their ranks can, and
// only if all of them have said so in time, all are told to do it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cluster/command.h"
#include "cluster/job_report.h"

namespace tidemark {

/// One thread at a time.
class CommandRound {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kPrepare{5};
  static constexpr std::chrono::seconds kCommit{60};

  /// `job`: its ranks are those of the command. Refused at once if one is not known, or not heard.
  CommandRound(CommandRequest request, const JobReport& job, Clock::time_point now);

  /// The orders to be sent now, each with its node.
  [[nodiscard]] std::vector<std::pair<std::string, CommandOrder>> take_orders() { return std::exchange(orders_, {}); }
  void take(const CommandAnswer& answer, Clock::time_point now);
  /// Looks at the time.
  void update(Clock::time_point now);

  [[nodiscard]] bool is_over() const { return phase_ == Phase::over; }
  [[nodiscard]] const CommandRequest& request() const { return request_; }
  /// Final once it is over.
  [[nodiscard]] const CommandReport& report() const { return report_; }
  /// Refuses it, if no rank has begun.
  void refuse(const std::string& reason);

 private:
  enum class Phase : std::uint8_t { prepare, commit, over };
  void order(CommandPhase phase);
  [[nodiscard]] bool all_answered() const;
  void end();

  CommandRequest request_;
  CommandReport report_;
  Phase phase_ = Phase::prepare;
  Clock::time_point deadline_;
  std::map<std::string, std::vector<std::int64_t>> pids_;  // by node
  std::vector<bool> answered_;                             // by position in report_.ranks, in this phase
  std::vector<std::pair<std::string, CommandOrder>> orders_;
};

}  // namespace tidemark
