// What is done when a memory is about to run out: commands and webhooks, on a thread of their own.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/worker.h"
#include "monitor/risk_notifier.h"
#include "publish/actions/rate_limit.h"

namespace tidemark {

/// One of the two.
struct RiskAction {
  RiskLevel least = RiskLevel::critical;
  std::string command = {};  ///< for sh
  std::string url = {};      ///< gets the assessment as the body of a POST
};

struct RiskActionOptions {
  std::vector<RiskAction> actions;
  std::chrono::nanoseconds interval = std::chrono::seconds(60);   ///< for the same action, device and level
  std::chrono::milliseconds patience = std::chrono::seconds(30);  ///< with one command or webhook
  std::function<void(const std::string&)> problem;                ///< gets a sentence, on another thread
};

/// Thread-safe but for tell().
class RiskActions {
 public:
  explicit RiskActions(RiskActionOptions options);
  /// Waits 5 s at most for what is to be done.
  ~RiskActions();

  /// A change of risk: rises are acted on, see on_risk(). `json` makes the assessment as text where it is needed. Never
  /// waits. One thread at a time.
  void tell(const RiskChange& change, const std::function<std::string()>& json);
  /// That were dropped because others took too long.
  [[nodiscard]] std::uint64_t dropped() const { return worker_.dropped(); }

 private:
  void act(const RiskAction& action, const std::string& json);

  RiskActionOptions options_;
  RateLimit limit_;
  Worker worker_;
};

}  // namespace tidemark
