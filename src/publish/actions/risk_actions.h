// Actions on a memory that is about to run out: commands and webhooks, each on a thread of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/worker.h"
#include "monitor/risk_notifier.h"

namespace tidemark {

/// One thread at a time. Expired keys are forgotten.
class RateLimit {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RateLimit(std::chrono::nanoseconds interval) : interval_(interval) {}

  /// Whether `key` may happen now, which it has not within the interval; if so, notes that it has.
  [[nodiscard]] bool allow(const std::string& key, Clock::time_point now) {
    std::erase_if(latest_, [&](const auto& one) { return now - one.second >= interval_; });
    return latest_.try_emplace(key, now).second;
  }

 private:
  std::chrono::nanoseconds interval_;
  std::map<std::string, Clock::time_point> latest_;
};

/// Runs `sh -c COMMAND` with `input` on its stdin and its output discarded, and waits for its end. Its remaining
/// processes are ended with it, and all of them after `patience`, or soon once `stop` is true; then none is started. An
/// error if it does not start, takes too long or fails. Any thread; leaves no zombie.
[[nodiscard]] Result<void> run_command(const std::string& command, const std::string& input,
                                       std::chrono::milliseconds patience, const std::atomic<bool>& stop);

/// A command or a webhook.
struct RiskAction {
  RiskLevel least = RiskLevel::critical;
  std::string command = {};  ///< for sh
  std::string url = {};      ///< receives the assessment as the body of a POST
};

struct RiskActionOptions {
  std::vector<RiskAction> actions;
  std::chrono::nanoseconds interval = std::chrono::seconds(60);   ///< for the same action, device and level
  std::chrono::milliseconds patience = std::chrono::seconds(30);  ///< for one command or webhook
  std::function<void(const std::string&)> problem;                ///< called with a sentence, on another thread
};

/// Thread-safe except for act_on().
class RiskActions {
 public:
  explicit RiskActions(RiskActionOptions options);
  /// Waits at most 5 s for pending actions, then ends those in progress.
  ~RiskActions();

  /// Acts on rises of risk, see on_risk(). `json` makes the assessment as text if it is needed. Never waits. One thread
  /// at a time.
  void act_on(const RiskChange& change, const std::function<std::string()>& json);
  /// Actions dropped because others took too long.
  [[nodiscard]] std::uint64_t dropped() const;

 private:
  void act(const RiskAction& action, const std::string& json, const std::atomic<bool>& stop);

  RiskActionOptions options_;
  RateLimit limit_;
  std::deque<Worker> workers_;  // one per action: a hanging action does not delay the others
};

}  // namespace tidemark
