// Tells listeners when the risk of a memory changes: hooks, webhooks, callbacks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "monitor/largest_holder.h"
#include "monitor/machine_state.h"

namespace tidemark {

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

}  // namespace tidemark
