#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "analyze/restart/restart.h"

namespace tidemark {
namespace {

// A process of the job that another one of them started, such as a DataLoader worker, inherits its rank.
bool is_child_of_any(const RankRecord& record, const std::vector<RankRecord>& records) {
  if (record.recording.is_worker) return true;
  const ProcessInfo& process = record.recording.process;
  return std::ranges::any_of(records, [&](const RankRecord& other) {
    const ProcessInfo& parent = other.recording.process;
    return &other != &record && process.parent_pid && parent.pid == process.parent_pid &&
           parent.hostname == process.hostname && parent.rank == process.rank;
  });
}

std::uint64_t started_at(const RankRecord& record) {
  return record.recording.process.start_wall_ns.value_or(0);
}

constexpr std::uint64_t kNoClock = std::numeric_limits<std::uint64_t>::max();

// Every recording of a job contains the processes that were killed: of those that are recorded, it is their own.
void give_kills_to_their_own(std::vector<RankRecord>& records) {
  for (RankRecord& record : records) {
    if (record.end != RankEnd::killed || record.killed_pid == record.recording.process.pid) continue;
    const bool is_recorded = std::ranges::any_of(records, [&record](const RankRecord& other) {
      return other.recording.process.pid == record.killed_pid &&
             other.recording.process.hostname == record.recording.process.hostname;
    });
    if (!is_recorded) continue;
    record.end = RankEnd::no_failure;
    record.killed_pid.reset();
    record.failed_ns.reset();
  }
}

void list_missing_ranks(RestartVerdict& verdict) {
  std::set<std::int32_t> present;
  for (const RankRecord& record : verdict.ranks) {
    const ProcessInfo& process = record.recording.process;
    if (process.rank) present.insert(*process.rank);
    if (process.world_size) verdict.world_size = std::max(verdict.world_size.value_or(0), *process.world_size);
  }
  if (present.empty() || !verdict.world_size) return;
  for (std::int32_t rank = 0; rank < *verdict.world_size; ++rank) {
    if (present.contains(rank)) continue;
    ++verdict.missing_count;
    if (verdict.missing_ranks.size() < kMaxMissingRanks) verdict.missing_ranks.push_back(rank);
    if (verdict.missing_ranks.size() == kMaxMissingRanks) {  // the number is not read from a file that may be damaged
      const auto listed = std::ranges::upper_bound(present, rank);
      const auto later = static_cast<std::uint64_t>(std::distance(listed, present.lower_bound(*verdict.world_size)));
      verdict.missing_count += static_cast<std::uint64_t>(*verdict.world_size - 1 - rank) - later;
      break;
    }
  }
}

}  // namespace

RankRecord rank_record(const Overview& overview, RecordingInfo recording, const std::vector<HostKill>& kills) {
  RankRecord record;
  record.recording = std::move(recording);
  if (!overview.out_of_memory.empty()) {
    const OutOfMemory& last = overview.out_of_memory.back();
    record.end = RankEnd::out_of_memory;
    record.device = overview.devices[last.device].device;
    record.requested_bytes = last.requested;
    record.failed_ns = last.time_ns;
  }
  const std::optional<std::int64_t>& pid = record.recording.process.pid;
  for (const HostKill& kill : kills) {
    const bool is_own = pid && kill.killed.process.pid == *pid;
    if (!is_own && record.end != RankEnd::no_failure) continue;
    record.end = RankEnd::killed;
    record.device.reset();
    record.killed_pid = kill.killed.process.pid;
    record.failed_ns = kill.killed.time_ns;
    if (is_own) break;
  }
  return record;
}

std::vector<RankRecord> newest_attempt(std::vector<RankRecord> records) {
  std::vector<const RankRecord*> kept;
  const RankRecord* newest = nullptr;
  const bool ranked =
      std::ranges::any_of(records, [](const RankRecord& record) { return record.recording.process.rank.has_value(); });
  std::map<std::int32_t, const RankRecord*> by_rank;
  for (const RankRecord& record : records) {
    if (is_child_of_any(record, records) || record.recording.process.rank.has_value() != ranked) continue;
    if (newest == nullptr || started_at(record) > started_at(*newest)) newest = &record;
    if (!ranked) continue;
    const RankRecord*& of_rank = by_rank[*record.recording.process.rank];
    if (of_rank == nullptr || started_at(record) > started_at(*of_rank)) of_rank = &record;
  }
  if (newest == nullptr) return records;
  if (!ranked) kept.push_back(newest);
  for (const auto& [rank, record] : by_rank) {
    if (record->recording.process.world_size == newest->recording.process.world_size) kept.push_back(record);
  }
  const auto is_kept = [&](const RankRecord& record) {
    return std::ranges::any_of(kept, [&](const RankRecord* one) {
      const ProcessInfo& parent = one->recording.process;
      const ProcessInfo& process = record.recording.process;
      return one == &record || (process.parent_pid && parent.pid == process.parent_pid &&
                                parent.hostname == process.hostname && started_at(record) >= started_at(*one));
    });
  };
  std::vector<RankRecord> of_attempt;
  for (const RankRecord& record : records) {
    if (is_kept(record)) of_attempt.push_back(record);
  }
  return of_attempt;
}

void order_ranks(RestartVerdict& verdict) {
  give_kills_to_their_own(verdict.ranks);
  std::ranges::stable_sort(verdict.ranks, {}, [](const RankRecord& record) {
    const std::optional<std::int32_t>& rank = record.recording.process.rank;
    return std::tuple(!rank, rank.value_or(0), record.recording.is_worker);
  });
  verdict.first.reset();
  verdict.world_size.reset();
  verdict.missing_ranks.clear();
  verdict.missing_count = 0;
  std::set<std::string> hosts;
  std::uint64_t earliest = kNoClock;
  for (std::size_t index = 0; index < verdict.ranks.size(); ++index) {
    const RankRecord& record = verdict.ranks[index];
    if (record.end != RankEnd::out_of_memory && record.end != RankEnd::killed) continue;
    hosts.insert(record.recording.process.hostname);
    const std::uint64_t failed = record.failed_wall_ns().value_or(kNoClock);
    if (verdict.first && failed >= earliest) continue;
    verdict.first = index;
    earliest = failed;
  }
  verdict.several_hosts = hosts.size() > 1;
  list_missing_ranks(verdict);
}

}  // namespace tidemark
