#include "analyze/timeline/host_timeline.h"

#include <algorithm>

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

}  // namespace tidemark
