#include "analyze/timeline/host_timeline.h"

#include <algorithm>
#include <variant>

#include "analyze/common/thinner.h"

namespace tidemark {

namespace {

std::optional<SampledOverTime> over_time(const std::optional<SampledBytes>& extremes,
                                         const std::vector<std::uint64_t>& times_ns,
                                         const std::vector<std::optional<std::uint64_t>>& bytes, std::size_t points) {
  if (!extremes) return std::nullopt;
  SampledOverTime sampled{*extremes, {}};
  Thinner<TimedBytes> thinner(times_ns.back(), points,
                              {[](const TimedBytes& point) { return std::optional(point.bytes); }}, sampled.points);
  TimedBytes last;
  for (std::size_t index = 0; index < times_ns.size(); ++index) {
    if (!bytes[index]) continue;
    last = {times_ns[index], *bytes[index]};
    thinner.add(last);
  }
  thinner.flush();
  if (sampled.points.back().time_ns != last.time_ns) sampled.points.push_back(last);
  return sampled;
}

std::vector<ResidentPoint> resident_over_time(const HostSeries& series, std::size_t points) {
  std::vector<ResidentPoint> kept;
  if (series.time_ns.empty()) return kept;
  Thinner<ResidentPoint> thinner(series.time_ns.back(), points,
                                 {[](const ResidentPoint& point) { return std::optional(point.bytes()); }}, kept);
  std::optional<ResidentPoint> last;
  for (std::size_t index = 0; index < series.time_ns.size(); ++index) {
    const HostSample sample = series.at(index);
    if (!sample.anon_bytes || !sample.file_bytes || !sample.shmem_bytes) continue;
    last = {sample.time_ns, *sample.anon_bytes, *sample.file_bytes, *sample.shmem_bytes};
    thinner.add(*last);
  }
  thinner.flush();
  if (last && (kept.empty() || kept.back().time_ns != last->time_ns)) kept.push_back(*last);
  return kept;
}

void take(const std::optional<std::uint64_t>& bytes, std::uint64_t time_ns, std::optional<SampledBytes>& into) {
  if (!bytes) return;
  if (!into || *bytes > into->peak) into = SampledBytes{*bytes, time_ns, {}, time_ns};
  into->end = bytes;
  into->last_at_ns = time_ns;
}

}  // namespace

std::uint64_t HostTimeline::end_ns() const {
  return std::max(rss ? rss->points.back().time_ns : 0, pss ? pss->points.back().time_ns : 0);
}

std::optional<HostTimeline> host_timeline(const HostSeries& series, std::size_t points) {
  const HostUsage usage = host_usage(series);
  HostTimeline host{over_time(usage.rss, series.time_ns, series.rss_bytes, points),
                    over_time(usage.pss, series.time_ns, series.pss_bytes, points), resident_over_time(series, points)};
  return host.rss || host.pss ? std::optional(std::move(host)) : std::nullopt;
}

void HostUsageCollector::add(const SampleRecord& record) {
  if (const auto* sample = std::get_if<HostSample>(&record)) add(*sample);
}

HostUsage HostUsageCollector::result() const {
  HostUsage memory = memory_;
  for (auto* value : {&memory.rss, &memory.pss, &memory.anon, &memory.file, &memory.shmem, &memory.swap, &memory.locked,
                      &memory.pinned, &memory.job_rss, &memory.job_pss, &memory.job_anon, &memory.job_file,
                      &memory.job_shmem, &memory.job_swap, &memory.cgroup_usage}) {
    if (*value && last_ns_ - (*value)->last_at_ns > kStaleNs) (*value)->end.reset();
  }
  return memory;
}

void HostUsageCollector::add(const HostSample& sample) {
  last_ns_ = std::max(last_ns_, sample.time_ns);
  take(sample.rss_bytes, sample.time_ns, memory_.rss);
  take(sample.pss_bytes, sample.time_ns, memory_.pss);
  take(sample.job_rss_bytes, sample.time_ns, memory_.job_rss);
  take(sample.job_pss_bytes, sample.time_ns, memory_.job_pss);
  take(sample.cgroup_usage_bytes, sample.time_ns, memory_.cgroup_usage);
  take(sample.anon_bytes, sample.time_ns, memory_.anon);
  take(sample.file_bytes, sample.time_ns, memory_.file);
  take(sample.shmem_bytes, sample.time_ns, memory_.shmem);
  take(sample.swap_bytes, sample.time_ns, memory_.swap);
  take(sample.locked_bytes, sample.time_ns, memory_.locked);
  take(sample.pinned_bytes, sample.time_ns, memory_.pinned);
  take(sample.job_anon_bytes, sample.time_ns, memory_.job_anon);
  take(sample.job_file_bytes, sample.time_ns, memory_.job_file);
  take(sample.job_shmem_bytes, sample.time_ns, memory_.job_shmem);
  take(sample.job_swap_bytes, sample.time_ns, memory_.job_swap);
  const auto& available = sample.machine_available_bytes;
  if (available && (!memory_.lowest_available_bytes || *available < *memory_.lowest_available_bytes)) {
    memory_.lowest_available_bytes = available;
    memory_.lowest_available_at_ns = sample.time_ns;
  }
  if (sample.cgroup_limit_bytes) memory_.cgroup_limit_bytes = sample.cgroup_limit_bytes;
  if (sample.job_processes) {
    memory_.most_job_processes = std::max(memory_.most_job_processes.value_or(0), *sample.job_processes);
  }
  if (sample.cgroup_oom_kills) {
    if (!first_oom_kills_) first_oom_kills_ = sample.cgroup_oom_kills;
    memory_.cgroup_oom_kills = *sample.cgroup_oom_kills - std::min(*sample.cgroup_oom_kills, *first_oom_kills_);
  }
}

HostUsage host_usage(const HostSeries& series) {
  HostUsageCollector collector;
  for (std::size_t index = 0; index < series.time_ns.size(); ++index) {
    collector.add(series.at(index));
  }
  return collector.result();
}

}  // namespace tidemark
