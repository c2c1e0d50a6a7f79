// Finds the events of a machine: what the monitor's engine reports once, and ranks that come and go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/job_report.h"
#include "cluster/rank_identity.h"
#include "monitor/engine.h"

namespace tidemark {

/// One thread at a time.
class EventWatch {
 public:
  static constexpr std::size_t kMaxEvents = 256;  ///< found since take(); further ones are left out

  /// `node`: its name in the job.
  explicit EventWatch(std::string node) : node_(std::move(node)) {}

  /// The engine's events of one tick.
  void take_events(const std::vector<MonitorEvent>& events, const MachineState& state);
  /// The job's ranks now. Those of the first call are no news.
  void take_ranks(const MonitorSnapshot& now, const NodeRanks& found);
  /// Growth of memory, looked for now and then.
  void take_growths(const LeakReport& report);

  [[nodiscard]] std::vector<JobEvent> take() { return std::exchange(found_, {}); }

 private:
  void add(const MachineState& state, JobEvent event);
  void add_risk(const MachineState& state, const RiskChange& change);
  void add_incident(const MachineState& state, const RecordedIncident& incident);
  [[nodiscard]] std::optional<std::uint32_t> rank_of(std::int64_t pid) const;

  std::string node_;
  std::uint64_t oom_kills_ = 0;
  bool has_ranks_ = false;
  std::map<std::int64_t, std::optional<std::uint32_t>> ranks_;  // by PID; also of those that have just ended
  std::set<std::int64_t> running_;
  std::set<std::int64_t> growing_;  // PIDs, or kHostMemory
  std::set<std::int64_t> strangers_;
  std::vector<JobEvent> found_;
};

}  // namespace tidemark
