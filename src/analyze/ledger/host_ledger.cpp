#include "analyze/ledger/host_ledger.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/arithmetic.h"

namespace tidemark {

namespace {

// If there are more processes, the smallest ones share one line.
constexpr std::size_t kMaxProcessLines = 10;

// Whether its memory began as a copy of its parent's. All workers of torch.compile except the first are forked from the
// first.
bool is_forked(const HostProcess& process, const std::vector<HostProcess>& all) {
  if (process.role == ProcessRole::data_worker || process.role == ProcessRole::child) return true;
  return process.role == ProcessRole::compile_worker &&
         std::any_of(all.begin(), all.end(), [&](const HostProcess& other) {
           return other.pid == process.parent_pid && other.role == ProcessRole::compile_worker;
         });
}

void add_caveat(HostBreakdown& ledger, HostCaveat caveat) {
  if (std::find(ledger.caveats.begin(), ledger.caveats.end(), caveat) == ledger.caveats.end()) {
    ledger.caveats.push_back(caveat);
  }
}

// Memory of a process: all its anonymous pages, or the pages that it does not share with its parent.
std::optional<std::uint64_t> own_anon(const HostProcess& process, const SharedAnon& shared, HostBreakdown& ledger) {
  const auto& anon = process.pages.anon_bytes;
  if (!anon) add_caveat(ledger, HostCaveat::anon_unknown);
  if (!anon || !is_forked(process, ledger.processes)) return anon;
  if (process.private_bytes) return std::min(*process.private_bytes, *anon);
  const auto not_own = shared.of(process.pid);
  add_caveat(ledger, not_own ? HostCaveat::estimated_pages : HostCaveat::shared_pages);
  return saturating_subtract(*anon, not_own.value_or(0));
}

// Returns the total of the job's processes.
std::uint64_t add_processes(HostBreakdown& ledger, const SharedAnon& shared) {
  std::vector<HostLine> lines;
  for (std::size_t n = 0; n < ledger.processes.size(); ++n) {
    lines.push_back({HostPart::process, own_anon(ledger.processes[n], shared, ledger), n, 0});
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const HostLine& left, const HostLine& right) { return left.bytes > right.bytes; });
  HostLine rest{HostPart::job_processes, ledger.other_pages.anon_bytes, {}, ledger.other_process_count};
  std::uint64_t sum = rest.bytes.value_or(0);
  for (const HostLine& line : lines) {
    sum = saturating_add(sum, line.bytes.value_or(0));
    if (ledger.lines.size() < kMaxProcessLines) {
      ledger.lines.push_back(line);
    } else {
      add_known(rest.bytes, line.bytes);
      ++rest.count;
    }
  }
  if (rest.count != 0) ledger.lines.push_back(rest);
  return sum;
}

constexpr std::size_t kMaxKills = 16;

std::optional<std::uint64_t>& bytes_for(HostPoint& point, const HostLine& line, const HostBreakdown& ledger) {
  switch (line.part) {
    case HostPart::process: {
      const HostProcess& process = ledger.processes[*line.process];
      if (process.recorded) return point.main_bytes;
      return process.role == ProcessRole::data_worker ? point.workers_bytes : point.job_bytes;
    }
    case HostPart::job_processes:
      return point.job_bytes;
    case HostPart::other_processes:
      return point.other_bytes;
    case HostPart::shared_memory:
      return point.shmem_bytes;
    case HostPart::page_cache:
      return point.cache_bytes;
    case HostPart::kernel:
    case HostPart::sockets:
      break;
  }
  return point.kernel_bytes;
}

// Memory that pressure cannot evict: a control group that reads files is always full of page cache.
std::uint64_t without_cache(const HostBreakdown& ledger) {
  std::uint64_t bytes = *ledger.used_bytes;
  for (const HostLine& line : ledger.lines) {
    if (line.part == HostPart::page_cache) bytes = saturating_subtract(bytes, line.bytes.value_or(0));
  }
  return bytes;
}

}  // namespace

HostScope scope_of(const HostPartsSample& sample) {
  const auto& limit = sample.cgroup.limit_bytes;
  const bool limited = limit && (!sample.machine.limit_bytes || *limit < *sample.machine.limit_bytes);
  return limited ? HostScope::cgroup : HostScope::machine;
}

const MemoryParts& parts_of(const HostPartsSample& sample) {
  return scope_of(sample) == HostScope::cgroup ? sample.cgroup : sample.machine;
}

void SharedAnon::update(const HostPartsSample& sample) {
  std::map<std::int64_t, std::uint64_t> kept;
  for (const HostProcess& process : sample.processes) {
    if (process.private_bytes && process.pages.anon_bytes) {
      kept[process.pid] = saturating_subtract(*process.pages.anon_bytes, *process.private_bytes);
    } else if (const auto before = of(process.pid)) {
      kept[process.pid] = *before;
    }
  }
  bytes_ = std::move(kept);
}

std::optional<std::uint64_t> SharedAnon::of(std::int64_t pid) const {
  const auto found = bytes_.find(pid);
  return found == bytes_.end() ? std::nullopt : std::optional(found->second);
}

HostBreakdown make_host_ledger(const HostPartsSample& sample, const SharedAnon& shared) {
  const MemoryParts& parts = parts_of(sample);
  HostBreakdown ledger;
  ledger.time_ns = sample.time_ns;
  ledger.scope = scope_of(sample);
  ledger.used_bytes = parts.used_bytes;
  ledger.limit_bytes = parts.limit_bytes;
  ledger.available_bytes = sample.machine_available_bytes;
  ledger.swap_bytes = parts.swap_bytes;
  ledger.events = sample.cgroup_events;
  ledger.processes = sample.processes;
  ledger.other_process_count = sample.other_processes;
  ledger.other_pages = sample.other_pages;
  for (const HostProcess& process : sample.processes) {
    add_known(ledger.locked_bytes, process.pages.locked_bytes);
    add_known(ledger.pinned_bytes, process.pages.pinned_bytes);
  }
  const std::uint64_t of_job = add_processes(ledger, shared);
  if (!parts.anon_bytes || !parts.cache_bytes) add_caveat(ledger, HostCaveat::parts_unknown);
  std::optional<std::uint64_t> others;
  if (parts.anon_bytes) others = saturating_subtract(*parts.anon_bytes, of_job);
  ledger.lines.push_back({HostPart::other_processes, others, {}, 0});
  ledger.lines.push_back({HostPart::shared_memory, parts.shmem_bytes, {}, 0});
  ledger.lines.push_back({HostPart::page_cache, parts.cache_bytes, {}, 0});
  ledger.lines.push_back({HostPart::kernel, parts.kernel_bytes, {}, 0});
  if (parts.socket_bytes) ledger.lines.push_back({HostPart::sockets, parts.socket_bytes, {}, 0});
  if (!parts.used_bytes) return ledger;
  std::uint64_t explained = 0;
  for (const HostLine& line : ledger.lines) explained = saturating_add(explained, line.bytes.value_or(0));
  ledger.unexplained_bytes = saturating_change(explained, *parts.used_bytes);
  return ledger;
}

std::optional<std::uint64_t> cuda_pinned_bytes(const Overview& overview, const HeldMemory& held) {
  std::optional<std::uint64_t> bytes;
  bool driver_known = false;
  for (std::size_t index = 0; index < overview.devices.size(); ++index) {
    const Device& device = overview.devices[index].device;
    driver_known |= is_driver_memory(device);
    if (device.type == DeviceType::cuda_host && index < held.devices.size()) {
      add_known(bytes, held.devices[index].allocated_bytes);
    }
  }
  return driver_known ? std::optional(bytes.value_or(0)) : std::nullopt;
}

void HostLedgerCollector::add(const SampleRecord& record, const EventsSoFar* events) {
  if (const auto* sample = std::get_if<HostPartsSample>(&record)) {
    add_parts(*sample, events);
  } else if (const auto* killed = std::get_if<KilledProcess>(&record)) {
    if (kills_.size() < kMaxKills) kills_.push_back({*killed, latest_.ledger});
  }
}

void HostLedgerCollector::add_parts(const HostPartsSample& sample, const EventsSoFar* events) {
  shared_.update(sample);
  HostBreakdown ledger = make_host_ledger(sample, shared_);
  time_ns_ = std::max(time_ns_, sample.time_ns);
  ledger.time_ns = time_ns_;
  if (!ledger.used_bytes) return;
  add_point(ledger);
  const bool there = std::any_of(ledger.processes.begin(), ledger.processes.end(),
                                 [](const HostProcess& process) { return process.recorded; });
  latest_ = {std::move(ledger), events == nullptr ? HeldMemory() : events->held()};
  if (there || !last_.ledger) last_ = latest_;
  if (!peak_.ledger || without_cache(*latest_.ledger) > without_cache(*peak_.ledger)) peak_ = latest_;
  if (query_.at_ns && time_ns_ <= *query_.at_ns) at_ = latest_;
}

void HostLedgerCollector::add_point(const HostBreakdown& ledger) {
  if (query_.stretch_ns == 0) return;
  const bool same = !points_.empty() && points_.back().time_ns / query_.stretch_ns == time_ns_ / query_.stretch_ns;
  if (same && points_.back().used_bytes >= *ledger.used_bytes) return;
  if (!same) points_.emplace_back();
  HostPoint& point = points_.back();
  point = {};
  point.time_ns = time_ns_;
  point.used_bytes = *ledger.used_bytes;
  for (const HostLine& line : ledger.lines) add_known(bytes_for(point, line, ledger), line.bytes);
}

HostLedgers HostLedgerCollector::finish(const Overview& overview) && {
  for (Chosen* chosen : {&peak_, &last_, &at_}) {
    if (chosen->ledger) chosen->ledger->cuda_pinned_bytes = cuda_pinned_bytes(overview, chosen->held);
  }
  return {std::move(peak_.ledger), std::move(last_.ledger), std::move(at_.ledger), std::move(points_),
          std::move(kills_)};
}

}  // namespace tidemark
