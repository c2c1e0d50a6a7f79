#include "collect/recorder/oom_watch.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <variant>

#include "collect/machine/files.h"

namespace tidemark {

namespace {

// A killed process may take this long to exit: the kernel takes back its memory first.
constexpr std::chrono::seconds kPatience{30};
// At most this many kills at a time are distinguished.
constexpr std::size_t kMaxOpen = 64;
constexpr std::size_t kMaxEnded = 1024;
// Some two seconds at the usual interval.
constexpr std::size_t kReadings = 20;
// Usage this close to the limit counts as having reached it: memory freed since the failed request is missing.
constexpr std::uint64_t kCloseToLimitPercent = 90;
// A machine counts as out of memory if less than this share was available at one of the latest readings.
constexpr std::uint64_t kShortShare = 8;

// The first version of the kernel's `struct pidfd_info` (include/uapi/linux/pidfd.h), by the kernel's ABI.
struct PidfdInfo {
  std::uint64_t mask = 0;
  std::uint64_t cgroup_id = 0;
  std::array<std::uint32_t, 11> ids{};
  std::int32_t exit_code = 0;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);
constexpr std::uint64_t kExitIsKnown = 1U << 3;

// As returned by wait(): the signal is in the lowest seven bits.
int signal_in(std::uint64_t status) {
  return static_cast<int>(status & 0x7f);
}

// The last field of /proc/PID/stat, the 52nd, of a zombie.
std::optional<int> by_stat(std::int64_t pid, const std::string& root) {
  const std::string text = trimmed(read_file(fmt::format("{}/proc/{}/stat", root, pid)).value_or(""));
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return std::nullopt;
  const char state = text[name_end + 2];
  if (state != 'Z' && state != 'X') return std::nullopt;
  const auto status = leading_number(text.substr(text.rfind(' ') + 1));
  return status ? std::optional(signal_in(*status)) : std::nullopt;
}

}  // namespace

void OomWatch::Count::see(const std::optional<std::uint64_t>& kills, Clock::time_point now) {
  if (!kills) return;
  if (last && *kills <= *last) return;  // also for earlier readings
  const std::uint64_t more = last ? *kills - *last : 0;
  for (std::uint64_t n = 0; n < more && open.size() < kMaxOpen; ++n) open.push_back(now);
  last = kills;
}

void OomWatch::Count::forget_before(Clock::time_point time) {
  while (!open.empty() && open.front() < time) open.pop_front();
}

bool OomWatch::Count::take() {
  if (open.empty()) return false;
  open.pop_front();
  return true;
}

OomWatch::OomWatch(std::string root, std::function<Clock::time_point()> now)
    : root_(std::move(root)),
      now_(std::move(now)),
      cgroup_(Cgroup::of_this_process(root_)),
      log_(root_),
      machine_bytes_(read_host_memory(root_).total_bytes) {
  check();
}

void OomWatch::check() {
  const Clock::time_point now = now_();
  if (cgroup_) in_cgroup_.see(cgroup_->read().oom_kills, now);
  on_machine_.see(read_machine_memory(root_).oom_kills, now);
  in_cgroup_.forget_before(now - kPatience);
  on_machine_.forget_before(now - kPatience);
  read_log();
}

void OomWatch::read_log() {
  const Clock::time_point now = now_();
  std::erase_if(logged_, [&](const auto& entry) { return now - entry.second.read > kPatience; });
  for (const LoggedKill& kill : log_.read()) {
    if (logged_.size() < kMaxEnded) logged_[kill.pid] = {kill, now};
  }
}

std::vector<KilledProcess> OomWatch::take(const Reading& reading) {
  if (const auto* host = std::get_if<HostReading>(&reading.what)) return take(*host, reading.ticks);
  if (const auto* parts = std::get_if<HostPartsSample>(&reading.what)) take(*parts);
  return {};
}

void OomWatch::take(const HostPartsSample& parts) {
  on_machine_.see(parts.machine_oom_kills, now_());
  for (const HostProcess& process : parts.processes) {
    const auto known = alive_.find(process.pid);
    if (known != alive_.end()) known->second = process;
  }
}

void OomWatch::began(std::int64_t pid) {
  std::erase_if(ended_, [&](const Ended& ended) { return ended.pid == pid; });
}

// A process in a later reading lives: it is this one after all, or another with the same PID.
bool OomWatch::has_ended(std::int64_t pid, std::uint64_t ticks) {
  const auto known = std::find_if(ended_.begin(), ended_.end(), [&](const Ended& ended) { return ended.pid == pid; });
  if (known == ended_.end()) return false;
  if (ticks <= known->ticks) return true;
  ended_.erase(known);
  return false;
}

std::vector<KilledProcess> OomWatch::take(const HostReading& host, std::uint64_t ticks) {
  // Each time, because a kill counts as happening when it is read.
  in_cgroup_.see(host.sample.cgroup_oom_kills, now_());
  read_log();
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
  check();
  std::vector<std::int64_t> gone;
  for (const auto& [pid, process] : alive_) {
    const bool there = read_file(fmt::format("{}/proc/{}/stat", root_, pid)).has_value();
    if (!there || ending_signal(pid, -1, root_)) gone.push_back(pid);
  }
  return victims_among(std::move(gone), std::numeric_limits<std::uint64_t>::max());
}

std::vector<KilledProcess> OomWatch::victims_among(std::vector<std::int64_t> gone, std::uint64_t ticks) {
  // The processes with the most memory first, as the kernel chooses.
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

bool OomWatch::machine_has_memory() const {
  std::optional<std::uint64_t> least;
  for (const HostReading& host : readings_) {
    const std::optional<std::uint64_t>& available = host.sample.machine_available_bytes;
    if (available) least = std::min(least.value_or(*available), *available);
  }
  return least && machine_bytes_ && *least >= *machine_bytes_ / kShortShare;
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
  if (ended_.size() > kMaxEnded) ended_.pop_front();
  return process;
}

std::optional<KilledProcess> OomWatch::ended(std::int64_t pid, std::optional<int> signal, std::uint64_t ticks) {
  const bool again = std::any_of(ended_.begin(), ended_.end(), [&](const Ended& ended) { return ended.pid == pid; });
  if (again) return std::nullopt;
  check();
  KilledProcess killed;
  killed.process = forget(pid, ticks);
  killed.cgroup_usage_bytes = usage_of_late();
  killed.cgroup_limit_bytes = cgroup_ ? cgroup_->limit_bytes() : std::nullopt;
  const auto entry = logged_.extract(pid);
  if (signal && *signal != SIGKILL) return std::nullopt;  // the logged process was an earlier one with the same PID
  const LoggedKill* logged = entry ? &entry.mapped().kill : nullptr;
  const bool of_another_group = machine_has_memory();
  const bool by_signal = signal && (!in_cgroup_.open.empty() || (!on_machine_.open.empty() && !of_another_group));
  const bool by_count = !signal && !in_cgroup_.open.empty();
  if (logged == nullptr && !by_signal && !by_count) return std::nullopt;
  killed.evidence = by_signal ? KillEvidence::exit_signal : KillEvidence::vanished;
  const auto& [usage, limit] = std::pair(killed.cgroup_usage_bytes, killed.cgroup_limit_bytes);
  const bool limit_reached = usage && limit && *usage >= *limit / 100 * kCloseToLimitPercent;
  if (in_cgroup_.take() && limit_reached) killed.scope = KillScope::cgroup;
  if (on_machine_.take() && !limit && !of_another_group) killed.scope = KillScope::machine;
  if (logged == nullptr) return killed;
  killed.evidence = KillEvidence::kernel_log;
  killed.scope = logged->scope;
  if (logged->pages.rss_bytes) {  // the kernel's own number, more recent than a sample
    const ProcessPages sampled = std::exchange(killed.process.pages, logged->pages);
    killed.process.pages.swap_bytes = sampled.swap_bytes;
    killed.process.pages.locked_bytes = sampled.locked_bytes;
    killed.process.pages.pinned_bytes = sampled.pinned_bytes;
  }
  return killed;
}

std::optional<int> ending_signal(std::int64_t pid, int pidfd, const std::string& root) {
  PidfdInfo info;
  info.mask = kExitIsKnown;
  if (pidfd >= 0 && ::ioctl(pidfd, kGetInfo, &info) == 0 && (info.mask & kExitIsKnown) != 0) {
    return signal_in(static_cast<std::uint32_t>(info.exit_code));
  }
  return by_stat(pid, root);
}

}  // namespace tidemark
