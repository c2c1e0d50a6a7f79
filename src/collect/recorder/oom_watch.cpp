#include "collect/recorder/oom_watch.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "collect/machine/files.h"

namespace tidemark {
namespace {

// A process that was killed may take so long to go: the kernel takes back its memory first.
constexpr std::chrono::seconds kPatience{30};
// More kills than this at a time are not told apart.
constexpr std::size_t kMostOpen = 64;
constexpr std::size_t kMostEnded = 1024;
// Some two seconds at the usual interval.
constexpr std::size_t kReadings = 20;
// Usage that is so close to the limit has reached it: what was freed meanwhile is missing.
constexpr std::uint64_t kCloseToLimitPercent = 90;

}  // namespace

void OomWatch::Count::see(const std::optional<std::uint64_t>& kills) {
  if (!kills) return;
  const std::uint64_t more = last && *kills > *last ? *kills - *last : 0;
  for (std::uint64_t n = 0; n < more && open.size() < kMostOpen; ++n) open.push_back(Clock::now());
  last = std::max(last, kills);  // a reading comes later than what was looked at meanwhile
}

void OomWatch::Count::forget_old() {
  while (!open.empty() && Clock::now() - open.front() > kPatience) open.pop_front();
}

bool OomWatch::Count::take() {
  if (open.empty()) return false;
  open.pop_front();
  return true;
}

OomWatch::OomWatch(std::string root) : root_(std::move(root)), cgroup_(Cgroup::of_this_process(root_)), log_(root_) {
  look();
}

void OomWatch::look() {
  if (cgroup_) in_cgroup_.see(cgroup_->read().oom_kills);
  on_machine_.see(read_machine_memory(root_).oom_kills);
  in_cgroup_.forget_old();
  on_machine_.forget_old();
  for (const LoggedKill& kill : log_.read()) {
    if (logged_.size() < kMostEnded) logged_[kill.pid] = {kill, Clock::now()};
  }
  std::erase_if(logged_, [](const auto& logged) { return Clock::now() - logged.second.seen > kPatience; });
}

std::vector<KilledProcess> OomWatch::take(const Reading& reading) {
  if (const auto* host = std::get_if<HostReading>(&reading.what)) return take(*host, reading.ticks);
  if (const auto* parts = std::get_if<HostPartsSample>(&reading.what)) take(*parts);
  return {};
}

void OomWatch::take(const HostPartsSample& parts) {
  on_machine_.see(parts.machine_oom_kills);
  for (const HostProcess& process : parts.processes) {
    const auto known = alive_.find(process.pid);
    if (known != alive_.end()) known->second = process;
  }
}

void OomWatch::began(std::int64_t pid) {
  std::erase_if(ended_, [&](const Ended& ended) { return ended.pid == pid; });
}

// One that is there later lives: a process of the same PID, or this one after all.
bool OomWatch::has_ended(std::int64_t pid, std::uint64_t ticks) {
  const auto known = std::find_if(ended_.begin(), ended_.end(), [&](const Ended& ended) { return ended.pid == pid; });
  if (known == ended_.end()) return false;
  if (ticks <= known->ticks) return true;
  ended_.erase(known);
  return false;
}

std::vector<KilledProcess> OomWatch::take(const HostReading& host, std::uint64_t ticks) {
  in_cgroup_.see(host.sample.cgroup_oom_kills);
  readings_.push_back(host);
  if (readings_.size() > kReadings) readings_.pop_front();
  std::map<std::int64_t, HostProcess> now;
  for (const ProcessMemory& memory : host.processes) {
    if (has_ended(memory.pid, ticks)) continue;
    const auto known = alive_.find(memory.pid);
    HostProcess& process = now[memory.pid];
    if (known != alive_.end()) process = known->second;
    process.pid = memory.pid;
    process.pages = memory.pages;
  }
  std::vector<std::int64_t> gone;
  for (const auto& [pid, process] : alive_) {
    if (!now.contains(pid)) gone.push_back(pid);
  }
  for (const std::int64_t pid : gone) now[pid] = alive_[pid];
  alive_ = std::move(now);
  return victims_among(std::move(gone), ticks);
}

std::vector<KilledProcess> OomWatch::program_ended() {
  look();
  std::vector<std::int64_t> gone;
  for (const auto& [pid, process] : alive_) {
    const bool there = read_file(fmt::format("{}/proc/{}/stat", root_, pid)).has_value();
    if (!there || ending_signal(pid, -1, root_)) gone.push_back(pid);
  }
  return victims_among(std::move(gone), std::numeric_limits<std::uint64_t>::max());
}

std::vector<KilledProcess> OomWatch::victims_among(std::vector<std::int64_t> gone, std::uint64_t ticks) {
  // Those that held most first: the kernel chooses by that.
  std::sort(gone.begin(), gone.end(), [&](std::int64_t left, std::int64_t right) {
    return alive_[left].pages.rss_bytes.value_or(0) > alive_[right].pages.rss_bytes.value_or(0);
  });
  std::vector<KilledProcess> killed;
  for (const std::int64_t pid : gone) {
    if (auto victim = ended(pid, ending_signal(pid, -1, root_), ticks)) killed.push_back(std::move(*victim));
  }
  return killed;
}

std::optional<std::uint64_t> OomWatch::usage_of_late() const {
  std::optional<std::uint64_t> most;
  for (const HostReading& host : readings_) most = std::max(most, host.sample.cgroup_usage_bytes);
  return most;
}

HostProcess OomWatch::forget(std::int64_t pid, std::uint64_t ticks) {
  HostProcess process;
  process.pid = pid;
  if (const auto known = alive_.find(pid); known != alive_.end()) {
    process = known->second;
    alive_.erase(known);
  }
  for (const HostReading& host : readings_) {
    for (const ProcessMemory& memory : host.processes) {
      if (memory.pid == pid && memory.pages.rss_bytes >= process.pages.rss_bytes) process.pages = memory.pages;
    }
  }
  ended_.push_back({pid, ticks});
  if (ended_.size() > kMostEnded) ended_.pop_front();
  return process;
}

std::optional<KilledProcess> OomWatch::ended(std::int64_t pid, std::optional<int> signal, std::uint64_t ticks) {
  const bool again = std::any_of(ended_.begin(), ended_.end(), [&](const Ended& ended) { return ended.pid == pid; });
  if (again) return std::nullopt;
  look();
  KilledProcess killed;
  killed.process = forget(pid, ticks);
  killed.cgroup_usage_bytes = usage_of_late();
  killed.cgroup_limit_bytes = cgroup_ ? cgroup_->limit_bytes() : std::nullopt;
  // The log may mean an earlier process with the same PID.
  const auto logged = !signal || *signal == SIGKILL ? logged_.find(pid) : logged_.end();
  const bool by_signal = signal == SIGKILL && !(in_cgroup_.open.empty() && on_machine_.open.empty());
  const bool by_count = !signal && !in_cgroup_.open.empty();
  if (logged == logged_.end() && !by_signal && !by_count) return std::nullopt;
  killed.evidence = by_signal ? KillEvidence::exit_signal : KillEvidence::vanished;
  const auto& [usage, limit] = std::pair(killed.cgroup_usage_bytes, killed.cgroup_limit_bytes);
  const bool limit_reached = usage && limit && *usage >= *limit / 100 * kCloseToLimitPercent;
  if (in_cgroup_.take() && limit_reached) killed.scope = KillScope::cgroup;
  if (on_machine_.take() && !limit) killed.scope = KillScope::machine;
  if (logged == logged_.end()) return killed;
  killed.evidence = KillEvidence::kernel_log;
  const LoggedKill& kill = logged->second.kill;
  killed.scope = kill.scope;
  if (kill.pages.rss_bytes) {  // what the kernel saw, not a sample from some time before
    const ProcessPages sampled = std::exchange(killed.process.pages, kill.pages);
    killed.process.pages.swap_bytes = sampled.swap_bytes;
    killed.process.pages.locked_bytes = sampled.locked_bytes;
    killed.process.pages.pinned_bytes = sampled.pinned_bytes;
  }
  logged_.erase(logged);
  return killed;
}

}  // namespace tidemark
