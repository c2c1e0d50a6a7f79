// Tells listeners when the risk of a memory changes: hooks, webhooks, callbacks.
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
  WatchedProcess process;  ///< who it is; not what it has, or had
  std::uint64_t bytes = 0;
};

/// The process that has most of a device; of the host, by its PSS or else RSS, where `device` is null. None where
/// nobody has a tenth of what is used: it is not what fills the memory.
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
  std::uint64_t new_oom_kills = 0;  ///< of the host's control group, since watching began
};

/// What happens on a change. Runs on a thread that does nothing else, one at a time, so that it may take its time; must
/// not throw.
using RiskListener = std::function<void(const RiskChange&)>;

/// A rise to a level that listeners were not told of is told at once. Other changes are told when the level has held
/// for kSettled, so that what goes up and down at a threshold is told once. Used by one thread.
class RiskNotifier {
 public:
  static constexpr std::chrono::nanoseconds kSettled = std::chrono::seconds(30);
  static constexpr std::size_t kMaxWaiting = 64;  ///< changes; later ones are dropped and counted

  RiskNotifier();
  /// Waits for changes that are being told, two seconds at most; then leaves them to the end of this process.
  ~RiskNotifier();
  RiskNotifier(const RiskNotifier&) = delete;
  RiskNotifier& operator=(const RiskNotifier&) = delete;

  /// From now on. The first one starts the thread.
  void add(RiskListener listener);
  /// Looks at the newest assessments. Returns the changes, which listeners are being told.
  std::vector<RiskChange> observe(const MachineState& state);
  /// That were dropped because listeners took too long.
  [[nodiscard]] std::uint64_t dropped() const;

 private:
  struct Told {
    RiskLevel level = RiskLevel::low;
    RiskLevel seen = RiskLevel::low;
    std::uint64_t seen_since_ns = 0;
  };
  struct Shared;  ///< with the thread
  static void run(const std::shared_ptr<Shared>& shared);
  void observe(RiskChange change, std::vector<RiskChange>& changes);

  std::map<std::string, Told> told_;
  std::shared_ptr<Shared> shared_;
  bool started_ = false;
};

/// monitor.add_listener(on_risk(RiskLevel::high, [](const RiskChange& change) { … })): a listener that calls `act` when
/// a risk rises to `least` or above, or from there further.
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
  [[nodiscard]] std::uint64_t earlier() const { return earlier_; }  ///< before those
  void clear() { changes_.clear(); }

 private:
  std::deque<RiskChange> changes_;
  std::uint64_t earlier_ = 0;
};

}  // namespace tidemark
