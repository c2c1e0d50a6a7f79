// Runs analyses of the last minute of each recording in progress on this machine, on a separate thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "analyze/attribution/attributed_store.h"
#include "follow/sliding_window.h"
#include "monitor/monitor_thread.h"
#include "tui/process_results.h"

namespace tidemark::tui {

/// Used by one thread, which never waits. Results come every two seconds, less often if they take longer than a tenth
/// of that.
class RecordedResults {
 public:
  static constexpr std::size_t kMaxRecordings = 8;  ///< maximum number of recordings with results; the first ones
  /// Data that the engine keeps of each recording: some 16 MiB.
  static constexpr SlidingWindow::Limits kWindow = {.length = std::chrono::minutes(1), .events = 200'000};

  /// `monitor` outlives this, and keeps kWindow of recordings.
  explicit RecordedResults(MonitorThread& monitor);
  /// Waits for the current analysis, a fraction of a second.
  ~RecordedResults();
  RecordedResults(const RecordedResults&) = delete;
  RecordedResults& operator=(const RecordedResults&) = delete;

  /// Begins, once.
  void start();
  /// Whether results are shown: otherwise nothing is analysed.
  void set_enabled(bool enabled);
  /// Results since the last call; nullopt if there are none.
  [[nodiscard]] std::optional<std::vector<ProcessResults>> take();

 private:
  struct Shared;  ///< with the thread
  std::unique_ptr<Shared> shared_;
  bool started_ = false;
};

/// Fills holders and findings from a window that begins at `begin_ns`. Takes time that grows with the window's events.
void fill_results(ProcessResults& process, const AttributedStore& window, std::uint64_t begin_ns);

}  // namespace tidemark::tui
