// Watches the machine from inside a program, on a thread of its own: what the commands profile, oom, leak and fragment
// see, for as long as the program wants.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "monitor/monitor.h"
#include "monitor/recordings_watch.h"
#include "monitor/watch_reports.h"

namespace tidemark {

struct BackgroundWatchOptions {
  MonitorOptions monitor = {};
  bool follow = false;  ///< what is recorded meanwhile
  /// Of that, what is kept for reports that need its events; none: nothing.
  std::optional<SlidingWindow::Limits> window = {};
};

/// What of it can be asked for: intervals from 10 ms to an hour, thresholds above 0% and up to 100%. The error names
/// what cannot be.
[[nodiscard]] Result<void> check_watch(const MonitorOptions& options);

/// Thread-safe. Where the process forks, the child does not watch, and reports fail there.
class BackgroundWatch {
 public:
  explicit BackgroundWatch(BackgroundWatchOptions options);
  /// As stop().
  ~BackgroundWatch();
  BackgroundWatch(const BackgroundWatch&) = delete;
  BackgroundWatch& operator=(const BackgroundWatch&) = delete;

  /// Told of changes of risk, on a thread of their own, from the next start() on.
  void add_listener(RiskListener listener);
  /// Begins, anew where it had ended: what was seen before is forgotten. Nothing where it watches.
  void start();
  /// Ends: waits for the thread, and that for a driver, a second at most. Nothing where it does not watch.
  void stop();
  [[nodiscard]] bool watching() const;

  /// What was seen since the start. Waits two seconds at most for the first readings. Fails where it was never started,
  /// and for a chosen device that is not there.
  Result<ProfileReport> profile();
  Result<OomReport> oom();
  /// `tracking`: by stack too, for which a window is needed.
  Result<LeakReport> leak(double threshold_bytes_per_minute, bool tracking);
  Result<FragmentReport> fragment();
  /// Changes of risk since the last call, the latest KeptChanges::kMaxChanges. Never waits for readings. Fails for a
  /// chosen device that is not there.
  Result<std::vector<RiskChange>> take_changes();

 private:
  struct Shared;  ///< with the thread
  void leave_to_parent();
  static void run(const std::shared_ptr<Shared>& shared);
  [[nodiscard]] Result<std::shared_ptr<Shared>> current() const;
  static Result<WatchRun> seen(Shared& shared, std::unique_lock<std::mutex>& lock);

  BackgroundWatchOptions options_;
  mutable std::mutex control_;  // of what follows
  std::vector<RiskListener> listeners_;
  std::shared_ptr<Shared> shared_;  // null before the first start
};

}  // namespace tidemark
