// How often the same thing may happen.
#pragma once

#include <chrono>
#include <map>
#include <string>

namespace tidemark {

/// One thread at a time. What is not due any more is forgotten.
class RateLimit {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RateLimit(std::chrono::nanoseconds interval) : interval_(interval) {}

  /// Whether `key` may happen now: it has not within the interval. Then it has.
  [[nodiscard]] bool allow(const std::string& key, Clock::time_point now) {
    std::erase_if(latest_, [&](const auto& one) { return now - one.second >= interval_; });
    return latest_.try_emplace(key, now).second;
  }

 private:
  std::chrono::nanoseconds interval_;
  std::map<std::string, Clock::time_point> latest_;
};

}  // namespace tidemark
