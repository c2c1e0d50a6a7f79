#include "cluster/rank_identity.h"

#include <fmt/format.h>

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

std::vector<RankIdentity> RankIdentities::find(const MonitorSnapshot& state) {
  std::map<std::int64_t, Known> seen;
  std::vector<RankIdentity> found;
  for (const WatchedProcess& process : state.state.processes) {
    if (!runs_the_program(process) || found.size() == AgentMessage::kMaxRanks) continue;
    const auto before = known_.find(process.pid);
    Known known;
    const bool same = before != known_.end() && before->second.first_seen_ns == process.first_seen_ns;
    // A child of a launcher has the launcher's environment until it executes its program.
    const bool young = state.state.now_ns - std::min(process.first_seen_ns, state.state.now_ns) < kYoungNs;
    if (same && (before->second.identity.rank || !young)) {
      known = std::move(before->second);
    } else {
      known.first_seen_ns = process.first_seen_ns;
      known.identity = identity_in(read_file(fmt::format("{}/proc/{}/environ", root_, process.pid)).value_or(""));
      known.identity.pid = process.pid;
    }
    found.push_back(known.identity);
    seen[process.pid] = std::move(known);
  }
  known_ = std::move(seen);
  return found;
}

}  // namespace tidemark
