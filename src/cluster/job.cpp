#include "cluster/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analyze/usage/outliers.h"
#include "base/arithmetic.h"
#include "base/units.h"

namespace tidemark {
namespace {

constexpr double kStragglerRatio = 1.15;  // of the median duration of a step
constexpr std::size_t kMinCompared = 3;   // ranks
constexpr double kMinPartShare = 0.05;    // of a rank's difference to its peers
constexpr std::uint64_t kMinPartBytes = kMiB;

// The values that a device and the host have alike.
template <typename Watched>
JobDevice usage_of(const Watched& watched) {
  JobDevice device;
  device.used_bytes = watched.used_bytes();
  device.limit_bytes = watched.limit_bytes();
  if (!watched.used.empty()) device.peak_bytes = watched.used.peak_bytes();
  if (watched.assessed_at_ns) device.risk = watched.risk;
  return device;
}

JobDevice device_of(const WatchedDevice& watched) {
  JobDevice device = usage_of(watched);
  device.key = watched.key;
  device.is_host = watched.is_host;
  device.name = watched.info.name;
  device.lost = watched.lost;
  device.total_bytes = watched.info.total_bytes;
  return device;
}

JobDevice host_of(const WatchedHost& watched) {
  JobDevice host = usage_of(watched);
  host.is_host = true;
  host.total_bytes = watched.memory.total_bytes;
  return host;
}

const RecordedProcess* recorded_of(const MonitorSnapshot& snapshot, std::int64_t pid) {
  for (const RecordedProcess& recorded : snapshot.recorded) {
    if (recorded.recording.pid == pid && recorded.goes_on()) return &recorded;
  }
  return nullptr;
}

const WatchedProcess* process_of(const MachineState& state, std::int64_t pid) {
  for (const WatchedProcess& process : state.processes) {
    if (process.pid == pid && !process.ended) return &process;
  }
  return nullptr;
}

// The device with most of the process's memory: as the driver says, else as its allocator does.
std::optional<std::size_t> main_device(const MachineState& state, const WatchedProcess* process,
                                       const RecordedProcess* recorded) {
  std::optional<std::size_t> best;
  std::uint64_t most = 0;
  const auto consider = [&](std::size_t device, std::uint64_t bytes) {
    if (device < state.devices.size() && (!best || bytes > most)) {
      best = device;
      most = bytes;
    }
  };
  if (process != nullptr) {
    for (const ProcessOnDevice& on : process->devices) {
      if (on.held && on.bytes) consider(on.device, *on.bytes);
    }
  }
  if (best) return best;
  if (recorded != nullptr) {
    for (const RecordedDevice& on : recorded->devices) {
      const auto device = std::find_if(state.devices.begin(), state.devices.end(),
                                       [&](const WatchedDevice& watched) { return watched.key == on.key; });
      if (!on.key.empty() && device != state.devices.end()) {
        consider(static_cast<std::size_t>(device - state.devices.begin()), on.allocated_bytes);
      }
    }
  }
  if (!best && process != nullptr) {
    for (const ProcessOnDevice& on : process->devices) {
      if (on.held) consider(on.device, 0);
    }
  }
  if (!best && state.no_gpu && !state.devices.empty()) best = 0;
  return best;
}

void take_worse(std::optional<RiskAssessment>& risk, const RiskAssessment& other) {
  if (!risk || is_worse(other, *risk)) risk = other;
}

// The driver's numbers of a process.
void add_driver_values(JobRank& rank, const MachineState& state, const WatchedProcess& process) {
  for (const ProcessOnDevice& on : process.devices) {
    if (!on.held) continue;
    if (on.device != rank.device) {
      if (on.bytes) rank.other_devices_bytes = rank.other_devices_bytes.value_or(0) + *on.bytes;
      continue;
    }
    rank.used_bytes = on.bytes;
    if (on.risk) take_worse(rank.risk, on.risk->risk);
  }
  const bool on_host = rank.device && state.devices[*rank.device].is_host;
  if (on_host) {
    rank.used_bytes = process.rss_bytes;
    if (process.risk) take_worse(rank.risk, process.risk->risk);
  }
}

// The numbers of a process's allocator, of the main device.
void add_recorded_values(JobRank& rank, const MachineState& state, const RecordedProcess& recorded) {
  const RecordedDevice* chosen = nullptr;
  for (const RecordedDevice& on : recorded.devices) {
    const bool right = rank.device ? on.key == state.devices[*rank.device].key : on.device.type != DeviceType::cpu;
    if (right && (chosen == nullptr || on.allocated_bytes > chosen->allocated_bytes)) chosen = &on;
  }
  if (chosen == nullptr) return;
  rank.allocated_bytes = chosen->allocated_bytes;
  rank.reserved_bytes = chosen->reserved_bytes;
  for (const RecordedOwners& owners : recorded.owners) {
    if (owners.device == chosen->device) rank.categories = owners.categories;
  }
}

JobRank make_rank(const NodeState& node, std::size_t position, bool current, const RankIdentity& identity,
                  const WatchedProcess* process, const RecordedProcess* recorded) {
  const MachineState& state = node.decoder.state().state;
  JobRank rank;
  rank.node = position;
  rank.pid = identity.pid;
  rank.rank = identity.rank;
  rank.local_rank = identity.local_rank;
  rank.world_size = identity.world_size;
  rank.role = identity.role;
  rank.current = current;
  rank.device = main_device(state, process, recorded);
  if (process != nullptr) {
    rank.process = process->name;
    add_driver_values(rank, state, *process);
  }
  if (recorded != nullptr) {
    if (rank.process.empty()) rank.process = recorded->recording.command;
    if (!rank.rank && recorded->recording.rank && *recorded->recording.rank >= 0) {
      rank.rank = static_cast<std::uint32_t>(*recorded->recording.rank);
    }
    add_recorded_values(rank, state, *recorded);
  }
  if (rank.device) {
    const WatchedDevice& device = state.devices[*rank.device];
    if (device.assessed_at_ns) take_worse(rank.risk, device.risk);
    const auto free = device.free_bytes();
    if (rank.used_bytes && free) rank.limit_bytes = *rank.used_bytes + *free;
  }
  if (const auto steps = node.steps.find(identity.pid); steps != node.steps.end()) {
    rank.steps = steps->second.steps();
    rank.step_seconds = steps->second.seconds();
  }
  return rank;
}

// A process without a rank counts if it uses a device or is recorded: a shell of the job does not.
bool is_of_job(const MachineState& state, const RankIdentity& identity, const WatchedProcess* process,
               const RecordedProcess* recorded) {
  if (process == nullptr && recorded == nullptr) return false;
  if (identity.rank || recorded != nullptr) return true;
  return std::any_of(process->devices.begin(), process->devices.end(),
                     [&](const ProcessOnDevice& on) { return on.held && on.device < state.devices.size(); });
}

void add_ranks(JobReport& report, const NodeState& node, std::size_t position) {
  const MonitorSnapshot& snapshot = node.decoder.state();
  std::vector<RankIdentity> identities = node.ranks;
  std::set<std::int64_t> known;
  for (const RankIdentity& identity : identities) known.insert(identity.pid);
  for (const RecordedProcess& recorded : snapshot.recorded) {
    if (known.insert(recorded.recording.pid).second) identities.push_back({recorded.recording.pid, {}, {}, {}, ""});
  }
  const bool current = report.nodes[position].condition == NodeCondition::current;
  for (const RankIdentity& identity : identities) {
    const WatchedProcess* process = process_of(snapshot.state, identity.pid);
    const RecordedProcess* recorded = recorded_of(snapshot, identity.pid);
    if (!is_of_job(snapshot.state, identity, process, recorded)) continue;
    report.ranks.push_back(make_rank(node, position, current, identity, process, recorded));
    ++report.nodes[position].ranks;
  }
}

void decide_risk(JobReport& report) {
  const auto consider = [&report](const std::optional<RiskAssessment>& risk, JobRisk where) {
    if (!risk || (report.risk && !is_worse(*risk, report.risk->risk))) return;
    where.risk = *risk;
    report.risk = where;
  };
  for (std::size_t n = 0; n < report.ranks.size(); ++n) {
    const JobRank& rank = report.ranks[n];
    if (rank.current) consider(rank.risk, {{}, rank.node, n, rank.device});
  }
  for (std::size_t n = 0; n < report.nodes.size(); ++n) {
    const JobNode& node = report.nodes[n];
    if (node.condition != NodeCondition::current) continue;
    for (std::size_t device = 0; device < node.devices.size(); ++device) {
      consider(node.devices[device].risk, {{}, n, std::nullopt, device});
    }
    consider(node.host.risk, {{}, n, std::nullopt, std::nullopt});
  }
}

using Members = std::vector<std::size_t>;  // positions in JobReport::ranks

// The first measure that all have, else the one that most have.
RankMeasure measure_of(const JobReport& report, const Members& members) {
  RankMeasure best = RankMeasure::used;
  std::size_t most = 0;
  for (const EnumName<RankMeasure>& measure : kRankMeasureNames) {
    const auto count = static_cast<std::size_t>(std::count_if(members.begin(), members.end(), [&](std::size_t n) {
      return report.ranks[n].bytes(measure.value).has_value();
    }));
    if (count > most) {
      best = measure.value;
      most = count;
    }
  }
  return best;
}

struct Part {
  RankPart part = RankPart::category;
  Category category = Category::unknown;
};

bool has_categories(const JobRank& rank) {
  return std::any_of(rank.categories.begin(), rank.categories.end(),
                     [](const auto& bytes) { return bytes.has_value(); });
}

std::optional<std::uint64_t> bytes_of(const JobRank& rank, Part part) {
  const auto beyond = [](std::optional<std::uint64_t> all, std::optional<std::uint64_t> of) {
    return all && of && *all >= *of ? std::optional(*all - *of) : std::nullopt;
  };
  switch (part.part) {
    case RankPart::category:
      if (!has_categories(rank)) return std::nullopt;
      return rank.categories[static_cast<std::size_t>(part.category)].value_or(0);
    case RankPart::unused:
      return beyond(rank.reserved_bytes, rank.allocated_bytes);
    case RankPart::outside:
      return beyond(rank.used_bytes, rank.reserved_bytes);
    case RankPart::allocated:
      break;
  }
  return rank.allocated_bytes;
}

// The parts of a rank's memory that its measure contains.
std::vector<Part> parts_of(const JobRank& rank, RankMeasure measure) {
  std::vector<Part> parts;
  if (has_categories(rank)) {
    for (const EnumName<Category>& category : kCategoryNames) parts.push_back({RankPart::category, category.value});
  } else {
    parts.push_back({RankPart::allocated});
  }
  if (measure != RankMeasure::allocated) parts.push_back({RankPart::unused});
  if (measure == RankMeasure::used) parts.push_back({RankPart::outside});
  return parts;
}

std::vector<PartDifference> explain(const JobReport& report, std::size_t outlier, const Members& peers,
                                    RankMeasure measure, std::int64_t difference) {
  std::vector<PartDifference> found;
  const double least =
      std::max(std::abs(static_cast<double>(difference)) * kMinPartShare, static_cast<double>(kMinPartBytes));
  for (const Part part : parts_of(report.ranks[outlier], measure)) {
    const auto own = bytes_of(report.ranks[outlier], part);
    std::vector<std::uint64_t> others;
    for (const std::size_t peer : peers) {
      if (const auto bytes = bytes_of(report.ranks[peer], part)) others.push_back(*bytes);
    }
    if (!own || others.empty()) continue;
    const std::int64_t more = saturating_change(median_of(std::move(others)), *own);
    if ((more > 0) == (difference > 0) && std::abs(static_cast<double>(more)) >= least) {
      found.push_back({part.part, part.category, more});
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const PartDifference& left, const PartDifference& right) {
    return std::abs(left.bytes) > std::abs(right.bytes);
  });
  found.resize(std::min(found.size(), RankOutlier::kMaxParts));
  return found;
}

void add_outliers(JobReport& report, const Members& members, RankMeasure measure) {
  std::vector<std::uint64_t> values;
  Members known;
  for (const std::size_t n : members) {
    const auto bytes = report.ranks[n].bytes(measure);
    if (!bytes) continue;
    values.push_back(*bytes);
    known.push_back(n);
  }
  if (values.size() < kMinCompared) return;
  const OutlierLimit limit = outlier_limit(values);
  for (std::size_t n = 0; n < known.size(); ++n) {
    if (!limit.is_outlier(values[n])) continue;
    Members peers = known;
    std::vector<std::uint64_t> others = values;
    peers.erase(peers.begin() + static_cast<std::ptrdiff_t>(n));
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(n));
    RankOutlier outlier{known[n], measure, values[n], median_of(std::move(others)), peers.size(), {}};
    const std::int64_t difference = saturating_change(outlier.peer_median_bytes, outlier.bytes);
    outlier.parts = explain(report, known[n], peers, measure, difference);
    report.outliers.push_back(std::move(outlier));
  }
}

void add_role(JobReport& report, const std::string& name, const Members& members) {
  RankRole role;
  role.role = name;
  role.count = members.size();
  role.measure = measure_of(report, members);
  std::vector<std::uint64_t> values;
  for (const std::size_t n : members) {
    const auto bytes = report.ranks[n].bytes(role.measure);
    if (!bytes) continue;
    if (values.empty() || *bytes < role.min_bytes) {
      role.min_bytes = *bytes;
      role.min_rank = n;
    }
    if (values.empty() || *bytes > role.max_bytes) {
      role.max_bytes = *bytes;
      role.max_rank = n;
    }
    values.push_back(*bytes);
  }
  role.known = values.size();
  if (!values.empty()) role.median_bytes = median_of(std::move(values));
  report.roles.push_back(std::move(role));
}

double median_seconds(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void add_stragglers(JobReport& report, const Members& members) {
  std::vector<double> values;
  for (const std::size_t n : members) {
    if (const auto seconds = report.ranks[n].step_seconds) values.push_back(*seconds);
  }
  if (values.size() < kMinCompared) return;
  const double median = median_seconds(std::move(values));
  for (const std::size_t n : members) {
    const auto seconds = report.ranks[n].step_seconds;
    if (seconds && *seconds > median * kStragglerRatio) report.stragglers.push_back({n, *seconds, median});
  }
}

void compare_ranks_of(JobReport& report) {
  std::map<std::pair<std::string, bool>, Members> roles;  // ranks on hosts without GPUs are no peers of those on GPUs
  std::vector<double> step_seconds;
  for (std::size_t n = 0; n < report.ranks.size(); ++n) {
    const JobRank& rank = report.ranks[n];
    if (!rank.current) continue;
    const bool on_host = rank.device && report.nodes[rank.node].devices[*rank.device].is_host;
    roles[{rank.role, on_host}].push_back(n);
    if (rank.step_seconds) step_seconds.push_back(*rank.step_seconds);
  }
  for (const auto& [key, members] : roles) {
    add_role(report, key.first, members);
    add_outliers(report, members, report.roles.back().measure);
    add_stragglers(report, members);
  }
  const auto gap = [](const RankOutlier& outlier) { return gap_between(outlier.bytes, outlier.peer_median_bytes); };
  std::stable_sort(report.outliers.begin(), report.outliers.end(),
                   [&](const RankOutlier& left, const RankOutlier& right) { return gap(left) > gap(right); });
  std::stable_sort(report.stragglers.begin(), report.stragglers.end(),
                   [](const Straggler& left, const Straggler& right) {
                     return left.step_seconds / left.median_seconds > right.step_seconds / right.median_seconds;
                   });
  if (!step_seconds.empty()) report.step_seconds = median_seconds(std::move(step_seconds));
}

std::optional<std::uint32_t> world_size_of(const std::vector<JobRank>& ranks) {
  std::optional<std::uint32_t> size;
  for (const JobRank& rank : ranks) {
    if (!rank.world_size) continue;
    if (size && *size != *rank.world_size) return std::nullopt;
    size = rank.world_size;
  }
  return size;
}

}  // namespace

bool is_worse(const RiskAssessment& risk, const RiskAssessment& than) {
  if (risk.level != than.level) return risk.level > than.level;
  if (!risk.seconds_to_limit) return false;
  return !than.seconds_to_limit || risk.seconds_to_limit->expected < than.seconds_to_limit->expected;
}

std::optional<std::uint64_t> JobRank::bytes(RankMeasure measure) const {
  return measure == RankMeasure::used       ? used_bytes
         : measure == RankMeasure::reserved ? reserved_bytes
                                            : allocated_bytes;
}

JobReport compare_job(const JobState& job, std::uint64_t now_ns) {
  JobReport report;
  report.refused = job.refused();
  for (const auto& [name, state] : job.nodes()) {
    JobNode node;
    node.name = name;
    if (state.sequence != 0) node.age_seconds = static_cast<double>(state.age_ns(now_ns)) / 1e9;
    const bool old = state.sequence == 0 || state.age_ns(now_ns) > JobState::kOldNs;
    node.condition = state.left ? NodeCondition::left : old ? NodeCondition::old : NodeCondition::current;
    node.has_rival = state.has_rival(now_ns);
    node.taken = state.taken;
    node.lost = state.lost;
    node.repeated = state.repeated;
    node.refused = state.refused;
    const MachineState& machine = state.decoder.state().state;
    node.problems = machine.problems;
    for (const WatchedDevice& device : machine.devices) node.devices.push_back(device_of(device));
    node.host = host_of(machine.host);
    report.nodes.push_back(std::move(node));
    add_ranks(report, state, report.nodes.size() - 1);
  }
  const auto key = [](const JobRank& rank) {
    return std::tuple(rank.rank.value_or(std::numeric_limits<std::uint32_t>::max()), rank.node, rank.pid);
  };
  std::stable_sort(report.ranks.begin(), report.ranks.end(),
                   [&](const JobRank& left, const JobRank& right) { return key(left) < key(right); });
  report.world_size = world_size_of(report.ranks);
  decide_risk(report);
  compare_ranks_of(report);
  return report;
}

MachineState all_devices(const JobState& job, std::size_t most) {
  MachineState all;
  all.devices_known = true;
  for (const auto& [name, node] : job.nodes()) {
    const MachineState& state = node.decoder.state().state;
    all.now_ns = std::max(all.now_ns, state.now_ns);
    for (const WatchedDevice& device : state.devices) {
      if (device.used.empty()) continue;
      all.devices.push_back(device);
      all.devices.back().key = fmt::format("{}/{}", name, device.key);
      all.devices.back().info.instance_of.reset();  // titles are made of keys
      all.devices.back().is_host = false;
    }
  }
  const auto fullness = [](const WatchedDevice& device) {
    const std::uint64_t total = device.info.total_bytes.value_or(0);
    return total == 0 ? 0.0 : static_cast<double>(device.used.peak_bytes()) / static_cast<double>(total);
  };
  if (all.devices.size() > most) {
    std::stable_sort(
        all.devices.begin(), all.devices.end(),
        [&](const WatchedDevice& left, const WatchedDevice& right) { return fullness(left) > fullness(right); });
    all.devices.resize(most);
  }
  return all;
}

}  // namespace tidemark
