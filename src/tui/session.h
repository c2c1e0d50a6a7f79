// Model of both user interfaces: the monitored machine, the recorded processes, marks, saved files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "monitor/monitor_thread.h"
#include "tui/program.h"
#include "tui/recorded_results.h"
#include "tui/state.h"
#include "tui/view.h"

namespace tidemark::tui {

/// One thread. No call but save() waits for a driver or for the reading of a recording.
class Session {
 public:
  explicit Session(const ProgramOptions& options);

  /// Starts watching; loads drivers on another thread.
  void start();
  /// Takes new readings. Returns whether there were any.
  bool update();
  /// Whether results of recordings are shown: until then there are none.
  void set_recordings_enabled(bool enabled);
  /// Whether these have come since, of all that is being recorded.
  [[nodiscard]] bool has_recordings() const;
  /// Shown data; while paused, the data at the beginning of the pause. References are valid until the next call.
  [[nodiscard]] Content content() const;
  void hold(bool held);
  /// Whether every device has answered once, or will not.
  [[nodiscard]] bool complete() const { return now_->state.complete(); }
  /// The error if a selected device does not exist.
  [[nodiscard]] std::optional<Error> wrong_choice() const;
  /// Whether first values may come at any moment.
  [[nodiscard]] bool is_starting() const { return now_->state.is_starting(); }

  Message mark(const std::string& name = "");
  /// The report of `tidemark profile` so far, with risks and marks. `path` as typed: "~/" is the home folder. Waits for
  /// a turn of the engine, and for first readings, two seconds at most.
  Message save(const std::string& path);
  /// Requests a recording from the flight recorder of a process.
  Message record(std::optional<std::int64_t> pid);

 private:
  [[nodiscard]] Result<std::string> report();
  void hand_on();

  ProgramOptions options_;
  MonitorThread monitor_;
  std::shared_ptr<const MonitorSnapshot> now_;
  std::shared_ptr<const MonitorSnapshot> held_;  // null: not paused
  RecordedResults recorded_results_;
  std::vector<ProcessResults> recorded_;
  std::optional<std::uint64_t> cuda_pinned_bytes_;
  bool recordings_came_ = false;
  std::vector<Mark> marks_;
};

}  // namespace tidemark::tui
