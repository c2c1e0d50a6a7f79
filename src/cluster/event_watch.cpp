#include "cluster/event_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "monitor/device_keys.h"
#include "monitor/memory_growth.h"

namespace tidemark {
namespace {

constexpr std::int64_t kHostMemory = -1;
constexpr std::size_t kMaxEndedRanks = 4096;

std::string memory_name(const std::string& device) {
  const bool is_number = !device.empty() && device.front() >= '0' && device.front() <= '9';
  return device == kHostKey ? "host memory" : is_number ? "GPU " + device : device;
}

std::string process_name(const MonitorSnapshot& now, std::int64_t pid) {
  for (const WatchedProcess& process : now.state.processes) {
    if (process.pid == pid) return process.name;
  }
  for (const RecordedProcess& recorded : now.recorded) {
    if (recorded.recording.pid == pid) return recorded.recording.command;
  }
  return "";
}

std::int64_t pid_of(const LeakReport& now, const MemoryGrowth& growth) {
  switch (growth.memory) {
    case GrowingMemory::process_device:
    case GrowingMemory::process_host:
      return now.state.processes[growth.process].pid;
    case GrowingMemory::allocated:
      return now.recorded[growth.process].recording.pid;
    case GrowingMemory::device:
    case GrowingMemory::host:
      break;
  }
  return kHostMemory;
}

}  // namespace

std::optional<std::uint32_t> EventWatch::rank_of(std::int64_t pid) const {
  const auto rank = ranks_.find(pid);
  return rank == ranks_.end() ? std::nullopt : rank->second;
}

void EventWatch::add(const MachineState& state, JobEvent event) {
  if (found_.size() == kMaxEvents) return;
  event.node = node_;
  event.wall_ns = state.now_wall_ns;
  if (event.pid && !event.rank) event.rank = rank_of(*event.pid);
  found_.push_back(std::move(event));
}

void EventWatch::add_risk(const MachineState& state, const RiskChange& change) {
  JobEvent event;
  event.kind = JobEventKind::risk;
  event.device = change.device;
  if (change.holder) event.pid = change.holder->process.pid;
  event.text = fmt::format("risk of {} {} (was {})", memory_name(change.device), name_of(change.now.level),
                           name_of(change.before));
  if (change.now.seconds_to_limit) {
    event.text += fmt::format(", full in about {:.0f} s", change.now.seconds_to_limit->expected);
  }
  add(state, std::move(event));
}

void EventWatch::add_incident(const MachineState& state, const RecordedIncident& incident) {
  JobEvent event;
  if (incident.pid >= 0) event.pid = incident.pid;
  switch (incident.kind) {
    case RecordedIncident::Kind::failed_request:
      event.device = incident.device;
      event.text =
          fmt::format("out of memory on {}: {} requested", memory_name(incident.device), format_bytes(incident.bytes));
      break;
    case RecordedIncident::Kind::killed:
      event.text = fmt::format("{} was killed by the kernel's OOM killer",
                               incident.process.empty() ? "a process" : incident.process);
      break;
    case RecordedIncident::Kind::dump: {
      event.kind = JobEventKind::dump;
      const std::vector<std::string>& paths = incident.dump.paths;
      event.text = paths.empty() ? "no dump: " + incident.dump.problem : "dumped to " + paths.front();
      if (paths.size() > 1) event.text += fmt::format(" and {} more", paths.size() - 1);
      break;
    }
  }
  add(state, std::move(event));
}

void EventWatch::take_events(const std::vector<MonitorEvent>& events, const MachineState& state) {
  for (const MonitorEvent& event : events) {
    if (event.kind == MonitorEventKind::risk_changed && event.risk) add_risk(state, *event.risk);
    const bool is_incident = event.kind == MonitorEventKind::incident && event.incident;
    if (is_incident && !strangers_.contains(event.incident->pid)) add_incident(state, *event.incident);
  }
  // Also of programs that are not recorded.
  if (const std::uint64_t kills = state.host.new_oom_kills(); kills > oom_kills_) {
    JobEvent event;
    event.device = kHostKey;
    event.text = fmt::format("the kernel's OOM killer ended {} in the control group",
                             kills - oom_kills_ == 1 ? "a process" : fmt::format("{} processes", kills - oom_kills_));
    add(state, std::move(event));
    oom_kills_ = kills;
  }
}

void EventWatch::take_ranks(const MonitorSnapshot& now, const NodeRanks& found) {
  strangers_ = found.strangers;
  if (ranks_.size() > kMaxEndedRanks)
    std::erase_if(ranks_, [this](const auto& rank) { return !running_.contains(rank.first); });
  std::set<std::int64_t> running;
  for (const RankIdentity& identity : found.ranks) {
    if (!identity.rank) continue;
    running.insert(identity.pid);
    ranks_[identity.pid] = identity.rank;
    if (!has_ranks_ || running_.contains(identity.pid)) continue;
    JobEvent event;
    event.kind = JobEventKind::rank_started;
    event.pid = identity.pid;
    const std::string name = process_name(now, identity.pid);
    event.text = name.empty() ? "started" : "started: " + name;
    add(now.state, std::move(event));
  }
  for (const std::int64_t pid : running_) {
    if (running.contains(pid)) continue;
    JobEvent event;
    event.kind = JobEventKind::rank_ended;
    event.pid = pid;
    event.text = "ended";
    add(now.state, std::move(event));
  }
  running_ = std::move(running);
  has_ranks_ = true;
}

// One event for a process, whose memory may grow at several places: what its allocator says comes first. Memory of the
// host is said only where no process explains it.
void EventWatch::take_growths(const LeakReport& report) {
  std::vector<MemoryGrowth> growths = report.growths;
  std::stable_sort(growths.begin(), growths.end(), [](const MemoryGrowth& left, const MemoryGrowth& right) {
    const auto order = [](GrowingMemory memory) {
      return memory == GrowingMemory::allocated ? 0 : memory == GrowingMemory::host ? 2 : 1;
    };
    return order(left.memory) < order(right.memory);
  });
  std::set<std::int64_t> growing;
  for (const MemoryGrowth& growth : growths) {
    if (growth.verdict != GrowthVerdict::growing || growth.memory == GrowingMemory::device) continue;
    const std::int64_t pid = pid_of(report, growth);
    if (strangers_.contains(pid)) continue;
    if (pid == kHostMemory && !growing.empty()) continue;
    if (!growing.insert(pid).second || growing_.contains(pid)) continue;
    JobEvent event;
    event.kind = JobEventKind::leak;
    if (pid != kHostMemory) event.pid = pid;
    const char* const what = growth.memory == GrowingMemory::allocated        ? "allocated memory"
                             : growth.memory == GrowingMemory::process_device ? "memory on a GPU"
                             : growth.memory == GrowingMemory::process_host   ? "resident memory"
                                                                              : "host memory";
    event.text = fmt::format("{} grows without end: {} a minute", what,
                             format_bytes(static_cast<std::uint64_t>(std::max(growth.bytes_per_minute(), 0.0))));
    add(report.state, std::move(event));
  }
  growing_ = std::move(growing);
}

}  // namespace tidemark
