// Calls listeners when the risk of a memory changes: hooks, webhooks, callbacks.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "monitor/machine_state.h"

namespace tidemark {

struct MemoryHolder {
  WatchedProcess process;  ///< its identity; not its current or past memory
  std::uint64_t bytes = 0;
};

/// The process with the most memory on a device; for the host (`device` is null), by its PSS or else RSS. std::nullopt
/// if none has a tenth of the used memory: then no process fills it.
[[nodiscard]] std::optional<MemoryHolder> largest_holder(const MachineState& state, const WatchedDevice* device);

struct RiskChange {
  std::string device;  ///< WatchedDevice::key, or "cpu" for the host
  std::string name;    ///< of the device; empty for the host
  RiskLevel before = RiskLevel::low;
  RiskAssessment now;
  std::uint64_t time_ns = 0;  ///< as in MachineState
  std::uint64_t wall_ns = 0;  ///< since 1970
  std::optional<std::uint64_t> limit_bytes;
  std::optional<std::uint64_t> free_bytes = {};
  std::optional<MemoryHolder> holder = {};
  std::uint64_t new_oom_kills = 0;  ///< in the host's control group, since watching began
};

/// Called on a change. Runs on a dedicated thread, one call at a time, so that it may take its time; must not throw.
using RiskListener = std::function<void(const RiskChange&)>;

/// A rise to a level that was not reported yet is reported at once. Other changes are reported when the level has held
/// for kSettled, so that a value that oscillates at a threshold is reported once. Used by one thread.
class RiskNotifier {
 public:
  static constexpr std::chrono::nanoseconds kSettled = std::chrono::seconds(30);
  static constexpr std::size_t kMaxWaiting = 64;  ///< changes; later ones are dropped and counted

  RiskNotifier();
  /// Waits at most two seconds for running listeners; then leaves them running until the process exits.
  ~RiskNotifier();
  RiskNotifier(const RiskNotifier&) = delete;
  RiskNotifier& operator=(const RiskNotifier&) = delete;

  /// From now on. The first one starts the thread.
  void add(RiskListener listener);
  /// Checks the newest assessments. Returns the changes, which are passed to the listeners.
  std::vector<RiskChange> observe(const MachineState& state);
  /// Changes dropped because listeners took too long.
  [[nodiscard]] std::uint64_t dropped() const;

 private:
  struct Told {
    RiskLevel level = RiskLevel::low;
    RiskLevel seen = RiskLevel::low;
    std::uint64_t seen_since_ns = 0;
  };
  struct Shared;  ///< shared with the thread
  static void run(const std::shared_ptr<Shared>& shared);
  void observe(RiskChange change, std::vector<RiskChange>& changes);

  std::map<std::string, Told> told_;
  std::shared_ptr<Shared> shared_;
  bool started_ = false;
};

/// monitor.add_listener(on_risk(RiskLevel::high, [](const RiskChange& change) { … })): a listener that calls `act` when
/// a risk rises to `least` or above, and at each further rise.
[[nodiscard]] RiskListener on_risk(RiskLevel least, RiskListener act);

/// The latest changes of risk, for a report. One thread at a time.
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
  [[nodiscard]] std::uint64_t earlier() const { return earlier_; }  ///< before the kept ones
  void clear() { changes_.clear(); }

 private:
  std::deque<RiskChange> changes_;
  std::uint64_t earlier_ = 0;
};

}  // namespace tidemark
