#include "analyze/ledger/host_samples.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "analyze/common/arithmetic.h"

namespace tidemark {
namespace {

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

// What a lack of memory cannot push out: a control group that reads files is always full of them.
std::uint64_t without_cache(const HostBreakdown& ledger) {
  std::uint64_t bytes = *ledger.used_bytes;
  for (const HostLine& line : ledger.lines) {
    if (line.part == HostPart::page_cache) bytes = saturating_subtract(bytes, line.bytes.value_or(0));
  }
  return bytes;
}

}  // namespace

void HostLedgerCollector::add(const SampleRecord& record, const EventsSoFar* events) {
  if (const auto* sample = std::get_if<HostPartsSample>(&record)) {
    add_parts(*sample, events);
  } else if (const auto* killed = std::get_if<KilledProcess>(&record)) {
    if (kills_.size() < kMaxKills) kills_.push_back({*killed, latest_.ledger});
  }
}

void HostLedgerCollector::add_parts(const HostPartsSample& sample, const EventsSoFar* events) {
  shared_.learn(sample);
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
