// Follows the recordings that are under way on this machine, on a thread of its own: what their allocators hold, who
// holds it, and what the analyses find in the last minute of each.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "monitor/machine_state.h"
#include "monitor/recordings_watch.h"
#include "tui/process_results.h"

namespace tidemark::tui {

/// Used by one thread, which is never kept waiting. A recording is read from its beginning when it is first followed;
/// results come every two seconds, less often where they take longer than a tenth of that. At most 8 recordings.
class RecordedResults {
 public:
  /// `interval`: between samples of what allocators hold. `only_listed`: only of processes that the machine's state
  /// lists.
  RecordedResults(std::chrono::nanoseconds interval, bool only_listed);
  /// Waits for what is being read, a fraction of a second.
  ~RecordedResults();
  RecordedResults(const RecordedResults&) = delete;
  RecordedResults& operator=(const RecordedResults&) = delete;

  /// Begins, once. Before, recordings cost nothing.
  void start();
  [[nodiscard]] bool started() const { return started_; }
  /// Whether somebody looks at results: without that, recordings are read, and not analysed.
  void want(bool wanted);
  /// What is known of the machine now: its devices and processes.
  void tell(const MachineState& machine);
  /// Results that came since the last call; none where nothing did.
  [[nodiscard]] std::optional<std::vector<ProcessResults>> take();
  /// As RecordingsWatch::take_peaks().
  [[nodiscard]] std::vector<RecordedPeak> take_peaks();
  /// The processes themselves, as of now.
  [[nodiscard]] std::vector<RecordedProcess> processes() const;

 private:
  struct Shared;  ///< with the thread
  std::unique_ptr<Shared> shared_;
  bool started_ = false;
};

}  // namespace tidemark::tui
