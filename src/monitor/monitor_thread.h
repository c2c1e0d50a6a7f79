// A monitor engine on a thread of its own: for programs that watch in the background, and for screens that must not
// wait while a recording is read.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "monitor/engine.h"

namespace tidemark {

/// Thread-safe. In a forked child it does not watch, and reports fail.
class MonitorThread {
 public:
  /// `options` must pass check().
  explicit MonitorThread(EngineOptions options);
  /// Calls stop().
  ~MonitorThread();
  MonitorThread(const MonitorThread&) = delete;
  MonitorThread& operator=(const MonitorThread&) = delete;

  /// `listener` is called for changes of risk, on a thread of its own, from the next start() on.
  void add_listener(RiskListener listener);
  /// Starts watching, and discards earlier data. No effect if it is running.
  void start();
  /// Stops: waits for the thread, which waits for a driver, at most a second. No effect if it is not running.
  void stop();
  [[nodiscard]] bool watching() const;

  // Functions that never wait for the engine.
  /// The state after the latest tick; null before the first one. From the first call on, each tick makes a snapshot.
  [[nodiscard]] std::shared_ptr<const MonitorSnapshot> snapshot() const;
  /// Changes of risk since the last call, at most the latest KeptChanges::kMaxChanges. Fails if it was never started,
  /// and for a chosen device that does not exist.
  Result<std::vector<RiskChange>> take_changes();

  // Functions that wait for the end of a tick.
  /// The reports since the start, as in MonitorEngine. Waits at most two seconds for the first readings. Fails if it
  /// was never started, and for a chosen device that does not exist.
  Result<ProfileReport> profile();
  Result<OomReport> oom();
  Result<LeakReport> leak();
  Result<FragmentReport> fragment();
  /// Calls `use` with the engine between two ticks, which wait meanwhile.
  Result<void> visit(const std::function<void(MonitorEngine&)>& use);

 private:
  struct Shared;  ///< shared with the thread
  void leave_to_parent();
  static void run(const std::shared_ptr<Shared>& shared);
  [[nodiscard]] Result<std::shared_ptr<Shared>> current() const;
  template <typename Report>
  Result<Report> report(Report (MonitorEngine::*make)());

  EngineOptions options_;
  mutable std::mutex control_;  // guards the following members
  std::vector<RiskListener> listeners_;
  std::shared_ptr<Shared> shared_;  // null before the first start
};

}  // namespace tidemark
