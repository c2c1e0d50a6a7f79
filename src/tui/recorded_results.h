// What the analyses find in the last minute of each recording that is under way on this machine, on a thread of its
// own.
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

/// Used by one thread, which is never kept waiting. Results come every two seconds, less often where they take longer
/// than a tenth of that.
class RecordedResults {
 public:
  static constexpr std::size_t kMaxRecordings = 8;  ///< that have results; the first ones
  /// What the engine has to keep of each recording: some 16 MiB.
  static constexpr SlidingWindow::Limits kWindow = {.length = std::chrono::minutes(1), .events = 200'000};

  /// `monitor` outlives this, and keeps kWindow of recordings.
  explicit RecordedResults(MonitorThread& monitor);
  /// Waits for what is being analysed, a fraction of a second.
  ~RecordedResults();
  RecordedResults(const RecordedResults&) = delete;
  RecordedResults& operator=(const RecordedResults&) = delete;

  /// Begins, once.
  void start();
  /// Whether somebody looks at results: without that, nothing is analysed.
  void set_enabled(bool enabled);
  /// Results that came since the last call; none where nothing did.
  [[nodiscard]] std::optional<std::vector<ProcessResults>> take();

 private:
  struct Shared;  ///< with the thread
  std::unique_ptr<Shared> shared_;
  bool started_ = false;
};

/// Fills holders and findings from a window that begins at `begin_ns`. Takes time that grows with the window's events.
void fill_results(ProcessResults& process, const AttributedStore& window, std::uint64_t begin_ns);

}  // namespace tidemark::tui
