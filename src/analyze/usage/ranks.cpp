#include "analyze/usage/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "analyze/usage/outliers.h"

namespace tidemark {
namespace {

// Host and pid: a pid is only unique on one machine.
using Process = std::pair<std::string, std::int64_t>;

class RankComparer {
 public:
  explicit RankComparer(std::vector<RankRow> rows) {
    for (const RankRow& row : rows) {
      const ProcessInfo& process = row.recording.process;
      if (process.pid) processes_.insert({process.hostname, *process.pid});
    }
    result_.rows = std::move(rows);
    for (RankRow& row : result_.rows) row.child = is_child(row);
  }

  RankComparison run() && {
    std::stable_sort(result_.rows.begin(), result_.rows.end(),
                     [](const RankRow& left, const RankRow& right) { return key_of(left) < key_of(right); });
    for (const RankRow& row : result_.rows) {
      if (row.device && find_group(row) == result_.groups.end()) add_group(row);
    }
    for (RankRow& row : result_.rows) compare(row);
    name_owners();
    return std::move(result_);
  }

 private:
  // A worker's parent may be an unrecorded one.
  [[nodiscard]] bool is_child(const RankRow& row) const {
    const ProcessInfo& process = row.recording.process;
    return row.recording.is_worker ||
           (process.parent_pid && processes_.count({process.hostname, *process.parent_pid}) != 0);
  }
  [[nodiscard]] static std::pair<std::int32_t, bool> key_of(const RankRow& row) {
    return {row.recording.process.rank.value_or(std::numeric_limits<std::int32_t>::max()), row.child};
  }
  [[nodiscard]] std::vector<RankGroup>::iterator find_group(const RankRow& row) {
    return std::find_if(result_.groups.begin(), result_.groups.end(), [&](const RankGroup& group) {
      return group.type == row.device->type && group.children == row.child;
    });
  }

  void add_group(const RankRow& first) {
    RankGroup group{first.device->type, first.child, 0, 0, 0};
    std::vector<std::uint64_t> peaks;
    for (const RankRow& row : result_.rows) {
      if (row.device && row.device->type == group.type && row.child == group.children) {
        peaks.push_back(row.peak_allocated_bytes);
      }
    }
    group.count = peaks.size();
    const OutlierLimit outliers = outlier_limit(peaks);
    group.median_bytes = outliers.median;
    group.limit_bytes = outliers.limit;
    result_.groups.push_back(group);
  }

  void compare(RankRow& row) {
    if (!row.device) return;
    const RankGroup& group = *find_group(row);
    if (group.median_bytes != 0 && group.count > 1) {
      const auto median = static_cast<double>(group.median_bytes);
      row.difference = (static_cast<double>(row.peak_allocated_bytes) - median) / median;
    }
    row.outlier = group.has_outliers() && gap_between(row.peak_allocated_bytes, group.median_bytes) > group.limit_bytes;
  }

  // If the ranks of a machine mostly use different GPUs, all of them use the same GPU numbers.
  void name_owners() {
    std::map<std::string, std::map<std::int8_t, std::int32_t>> ranks;  // of a machine, by GPU
    std::set<std::string> shared;
    for (const RankRow& row : result_.rows) {
      const ProcessInfo& process = row.recording.process;
      if (row.child || !process.rank || !row.device || row.device->type != DeviceType::cuda) continue;
      if (!ranks[process.hostname].try_emplace(row.device->index, *process.rank).second)
        shared.insert(process.hostname);
    }
    for (RankRow& row : result_.rows) {
      const std::string& machine = row.recording.process.hostname;
      if (!row.recording.process.rank || shared.contains(machine)) continue;
      for (OtherGpu& other : row.other_gpus) {
        const auto owner = ranks[machine].find(other.device.index);
        if (owner != ranks[machine].end()) other.rank = owner->second;
      }
    }
  }

  std::set<Process> processes_;
  RankComparison result_;
};

}  // namespace

RankRow rank_row(std::size_t index, const Summary& summary) {
  RankRow row;
  row.index = index;
  row.recording = summary.recording;
  row.chosen = summary.chosen;
  const SummaryDevice* busiest = nullptr;
  for (const SummaryDevice& device : summary.devices) {
    const DeviceSummary& totals = device.totals;
    row.out_of_memory |= totals.out_of_memory_count != 0;
    if (!totals.peak_allocated_at_ns) continue;
    // GPUs come first.
    const bool is_cpu = totals.device.type == DeviceType::cpu;
    if (busiest == nullptr || (!is_cpu && totals.peak_allocated_bytes > busiest->totals.peak_allocated_bytes)) {
      busiest = &device;
    }
  }
  if (busiest == nullptr) return row;
  row.device = busiest->totals.device;
  row.peak_allocated_bytes = busiest->totals.peak_allocated_bytes;
  row.peak_reserved_bytes = busiest->totals.peak_reserved_bytes;
  for (const SummaryDevice& device : summary.devices) {
    const bool is_other = device.totals.device.type == DeviceType::cuda && &device != busiest;
    if (!is_other || !device.totals.peak_allocated_at_ns) continue;
    OtherGpu& other =
        row.other_gpus.emplace_back(OtherGpu{device.totals.device, device.totals.peak_allocated_bytes, {}});
    if (!device.call_sites.empty()) other.stack = device.call_sites.front().stack;
  }
  const std::string name = to_string(*row.device);
  for (const LedgerExtremes& ledger : summary.ledgers) {
    if (ledger.device == name) row.device_used_bytes = ledger.peak.used_bytes;
  }
  return row;
}

RankComparison compare_ranks(std::vector<RankRow> rows) {
  return RankComparer(std::move(rows)).run();
}

Result<void> check_rank(const std::vector<RankRow>& rows) {
  std::set<std::int32_t> ranks;
  for (const RankRow& row : rows) {
    if (row.chosen.value_or(true)) return {};
    if (row.recording.process.rank) ranks.insert(*row.recording.process.rank);
  }
  return Error{ranks.empty()
                   ? "--rank: these recordings have no ranks"
                   : fmt::format("--rank: no recording of this rank (available: {})", fmt::join(ranks, ", "))};
}

Result<JobSummary> compare_summaries(const std::vector<Summary>& summaries, std::size_t detailed) {
  std::vector<RankRow> rows;
  rows.reserve(summaries.size());
  for (const Summary& summary : summaries) rows.push_back(rank_row(rows.size(), summary));
  if (auto status = check_rank(rows); !status) return status.error();
  JobSummary job;
  if (summaries.size() == 1) {
    job.summaries = {&summaries.front()};
    return job;
  }
  job.ranks = compare_ranks(std::move(rows));
  for (const RankRow& row : job.ranks->rows) {
    if (row.chosen.value_or(summaries.size() <= detailed)) job.summaries.push_back(&summaries[row.index]);
  }
  return job;
}

}  // namespace tidemark
