#include "cluster/rank_identity.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "collect/machine/files.h"
#include "collect/machine/visible_devices.h"
#include "collect/ring/ranks.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kYoungNs = 10'000'000'000;

std::optional<std::uint32_t> number_in(std::string_view environment, std::string_view name) {
  const auto text = variable_in(environment, name);
  std::uint32_t number = 0;
  if (!text) return std::nullopt;
  const auto [rest, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  const bool whole = error == std::errc() && rest == text->data() + text->size();
  return whole && number <= 0x7FFFFFFF ? std::optional(number) : std::nullopt;
}

// As ring::ranks_now() does for its own process.
std::optional<std::uint32_t> launcher_number(std::string_view environment, const char* ring::RankVariables::*name) {
  for (const ring::RankVariables& launcher : ring::kRankVariables) {
    if (launcher.required != nullptr && !variable_in(environment, launcher.required)) continue;
    if (launcher.*name == nullptr) continue;
    if (const auto number = number_in(environment, launcher.*name)) return number;
  }
  return std::nullopt;
}

// Whether a process is one of those that the job consists of: a rank, or a program that a device or a recorder lists.
bool runs_the_program(const WatchedProcess& process) {
  if (process.ended || process.kind == ProcessKind::other_namespace || !process.on_host) return false;
  const ProcessRole role = process.on_host->role;
  return role == ProcessRole::rank || role == ProcessRole::main || role == ProcessRole::other;
}

}  // namespace

RankIdentity identity_in(std::string_view environment) {
  RankIdentity identity;
  identity.rank = launcher_number(environment, &ring::RankVariables::rank);
  identity.local_rank = launcher_number(environment, &ring::RankVariables::local_rank);
  identity.world_size = launcher_number(environment, &ring::RankVariables::world_size);
  if (!identity.rank) identity.rank = number_in(environment, "JOB_COMPLETION_INDEX");
  const std::string own = variable_in(environment, "TIDEMARK_ROLE").value_or("");
  const std::string torchrun = variable_in(environment, "ROLE_NAME").value_or("");
  const std::string role = !own.empty() ? own : torchrun != "default" ? torchrun : "";
  if (!role.empty()) identity.role = clean_name(role);
  return identity;
}

JobNumbers job_numbers_in(std::string_view environment) {
  JobNumbers numbers;
  for (const JobVariable& variable : kJobVariables) {
    if (variable.required != nullptr && !variable_in(environment, variable.required)) continue;
    const auto value = variable_in(environment, variable.name);
    if (value && !value->empty() && *value != "none") numbers.emplace_back(variable.name, clean_name(*value));
  }
  return numbers;
}

JobNumbers own_job_numbers() {
  std::string environment;
  for (char** variable = ::environ; variable != nullptr && *variable != nullptr; ++variable) {
    environment.append(*variable).push_back('\0');
  }
  return job_numbers_in(environment);
}

RankIdentities::RankIdentities(JobNumbers own, std::string job, std::string root)
    : own_(std::move(own)), job_(std::move(job)), root_(std::move(root)) {}

// A child of a launcher has the launcher's environment until it executes its program: those of young processes are read
// again.
const RankIdentities::Known& RankIdentities::look_up(std::int64_t pid, std::uint64_t first_seen_ns, bool young,
                                                     KnownProcesses& seen) {
  const auto before = known_.find(pid);
  Known known;
  if (before != known_.end() && before->second.first_seen_ns == first_seen_ns &&
      (before->second.identity.rank || !young)) {
    known = std::move(before->second);
  } else {
    const std::string environment = read_file(fmt::format("{}/proc/{}/environ", root_, pid)).value_or("");
    known.first_seen_ns = first_seen_ns;
    known.identity = identity_in(environment);
    known.identity.pid = pid;
    known.jobs = job_numbers_in(environment);
  }
  const auto has_name = [this](const auto& number) { return number.second == job_; };
  job_is_number_ = job_is_number_ || std::any_of(known.jobs.begin(), known.jobs.end(), has_name);
  return seen.insert_or_assign(pid, std::move(known)).first->second;
}

bool RankIdentities::is_of_job(const JobNumbers& jobs) const {
  if (!own_.empty()) return std::find(jobs.begin(), jobs.end(), own_.front()) != jobs.end();
  const auto has_name = [this](const auto& number) { return number.second == job_; };
  return !job_is_number_ || std::any_of(jobs.begin(), jobs.end(), has_name);
}

std::string RankIdentities::problem_of(const KnownProcesses& seen, const NodeRanks& found) const {
  constexpr std::size_t kMaxNamed = 4;
  std::set<std::string> jobs;
  std::size_t strange_ranks = 0;
  for (const auto& [pid, known] : seen) {
    const bool strange = found.strangers.contains(pid);
    if (strange && known.identity.rank) ++strange_ranks;
    if (!strange && !known.jobs.empty()) jobs.insert(known.jobs.front().first + " " + known.jobs.front().second);
  }
  if (!own_.empty() && found.ranks.empty() && strange_ranks > 0) {
    return fmt::format("no rank has {}={}, as its agent has; ranks of other jobs, or of none, are left out",
                       own_.front().first, own_.front().second);
  }
  if (!own_.empty() || job_is_number_ || jobs.size() < 2) return "";
  std::string named;
  std::size_t count = 0;
  for (const std::string& job : jobs) {
    if (++count <= kMaxNamed) named += (named.empty() ? "" : ", ") + job;
  }
  return fmt::format(
      "ranks of {} jobs are counted together ({}{}): start its agent inside the job, or name the job's number with "
      "--job",
      jobs.size(), named, count > kMaxNamed ? ", ..." : "");
}

NodeRanks RankIdentities::find(const MonitorSnapshot& state) {
  KnownProcesses seen;
  const auto is_young = [&](std::uint64_t first_seen_ns) {
    return state.state.now_ns - std::min(first_seen_ns, state.state.now_ns) < kYoungNs;
  };
  for (const WatchedProcess& process : state.state.processes) {
    if (!runs_the_program(process) || seen.size() == AgentMessage::kMaxRanks) continue;
    look_up(process.pid, process.first_seen_ns, is_young(process.first_seen_ns), seen);
  }
  NodeRanks found;
  for (const auto& [pid, known] : seen) {
    if (is_of_job(known.jobs)) {
      found.ranks.push_back(known.identity);
    } else {
      found.strangers.insert(pid);
    }
  }
  // Recorded ones that are not among the watched processes.
  for (const RecordedProcess& recorded : state.recorded) {
    const std::int64_t pid = recorded.recording.pid;
    if (seen.contains(pid) || seen.size() == AgentMessage::kMaxRanks) continue;
    if (!is_of_job(look_up(pid, recorded.recording.started_wall_ns, false, seen).jobs)) found.strangers.insert(pid);
  }
  found.problem = problem_of(seen, found);
  known_ = std::move(seen);
  return found;
}

}  // namespace tidemark
