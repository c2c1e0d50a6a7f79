// A monitor engine on a thread of its own: for programs that watch while they do something else, and for screens that
// must not wait for a recording to be read.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "monitor/engine.h"

namespace tidemark {

/// Thread-safe. Where the process forks, the child does not watch, and reports fail there.
class MonitorThread {
 public:
  /// Options are those that check() accepts.
  explicit MonitorThread(EngineOptions options);
  /// As stop().
  ~MonitorThread();
  MonitorThread(const MonitorThread&) = delete;
  MonitorThread& operator=(const MonitorThread&) = delete;

  /// Told of changes of risk, on a thread of their own, from the next start() on.
  void add_listener(RiskListener listener);
  /// Begins, anew where it had ended: what was seen before is forgotten. Nothing where it watches.
  void start();
  /// Ends: waits for the thread, and that for a driver, a second at most. Nothing where it does not watch.
  void stop();
  [[nodiscard]] bool watching() const;

  // What never waits for the engine.
  /// What it knew after its latest turn; null before the first one. From the first call on, each turn leaves one.
  [[nodiscard]] std::shared_ptr<const MonitorSnapshot> snapshot() const;
  /// Changes of risk since the last call, the latest KeptChanges::kMaxChanges. Fails where it was never started, and
  /// for a chosen device that is not there.
  Result<std::vector<RiskChange>> take_changes();

  // What waits for a turn of the engine to end.
  /// What was seen since the start, as MonitorEngine has it. Waits two seconds at most for the first readings. Fails
  /// where it was never started, and for a chosen device that is not there.
  Result<ProfileReport> profile();
  Result<OomReport> oom();
  Result<LeakReport> leak();
  Result<FragmentReport> fragment();
  /// Has `use` do something with the engine between two turns, which it holds up meanwhile.
  Result<void> visit(const std::function<void(MonitorEngine&)>& use);

 private:
  struct Shared;  ///< with the thread
  void leave_to_parent();
  static void run(const std::shared_ptr<Shared>& shared);
  [[nodiscard]] Result<std::shared_ptr<Shared>> current() const;
  template <typename Report>
  Result<Report> report(Report (MonitorEngine::*make)());

  EngineOptions options_;
  mutable std::mutex control_;  // of what follows
  std::vector<RiskListener> listeners_;
  std::shared_ptr<Shared> shared_;  // null before the first start
};

}  // namespace tidemark
