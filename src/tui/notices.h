// What other threads have to say while the screen is on the terminal: stderr would write into it.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "tui/state.h"

namespace tidemark::tui {

/// Thread-safe. Of many that nobody takes, the latest are kept.
class Notices {
 public:
  void add(Message message) {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() == kMaxNotices) waiting_.pop_front();
    waiting_.push_back(std::move(message));
  }
  [[nodiscard]] std::optional<Message> take() {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return std::nullopt;
    Message first = std::move(waiting_.front());
    waiting_.pop_front();
    return first;
  }

 private:
  static constexpr std::size_t kMaxNotices = 20;
  std::mutex mutex_;
  std::deque<Message> waiting_;
};

}  // namespace tidemark::tui
