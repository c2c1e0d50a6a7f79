// The program: full screen on a terminal, else a prompt that reads commands line by line.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "monitor/engine.h"
#include "tui/state.h"

namespace tidemark::tui {

/// Messages of other threads while the screen is on the terminal, which stderr would corrupt. Thread-safe. If they are
/// not taken, only the latest are kept.
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

struct ProgramOptions {
  EngineOptions engine = {};
  std::size_t first_view = 0;  ///< position in views()
  /// Called after each reading of the machine, on the program's thread, with the changes of risk since the last call
  /// and with a function that returns the recorded processes at that time.
  std::function<void(const MachineState&, const std::vector<RiskChange>&,
                     const std::function<std::vector<RecordedProcess>()>&)>
      on_update = {};
  Notices* notices = nullptr;  ///< to be shown; null: there are none
};

struct ProgramEnd {
  int code = 0;               ///< exit code
  std::optional<int> signal;  ///< the signal that ended it; must end this process: die_of()
};

/// Full screen, until a key or a signal ends it; the terminal is given back. Needs can_open_display().
[[nodiscard]] Result<ProgramEnd> run_full_screen(const ProgramOptions& options);

/// Reads commands from stdin until `quit`, its end or a signal, and prints their results. Returns exit code 2 if one of
/// them failed.
[[nodiscard]] Result<ProgramEnd> run_prompt(const ProgramOptions& options);

}  // namespace tidemark::tui
