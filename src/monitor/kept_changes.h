// The latest changes of risk, for a report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "monitor/risk_notifier.h"

namespace tidemark {

/// One thread at a time.
class KeptChanges {
 public:
  static constexpr std::size_t kMaxChanges = 1000;

  void add(const RiskChange& change) {
    changes_.push_back(change);
    if (changes_.size() <= kMaxChanges) return;
    changes_.pop_front();
    ++earlier_;
  }
  [[nodiscard]] std::vector<RiskChange> all() const { return {changes_.begin(), changes_.end()}; }
  [[nodiscard]] std::uint64_t earlier() const { return earlier_; }  ///< before those
  void clear() { changes_.clear(); }

 private:
  std::deque<RiskChange> changes_;
  std::uint64_t earlier_ = 0;
};

}  // namespace tidemark
