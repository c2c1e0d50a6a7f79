#include "analyze/host_timeline.h"

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

}  // namespace

std::uint64_t HostTimeline::end_ns() const {
  return std::max(rss ? rss->points.back().time_ns : 0, pss ? pss->points.back().time_ns : 0);
}

std::optional<HostTimeline> host_timeline(const HostSeries& series, std::size_t points) {
  const HostUsage usage = host_usage(series);
  HostTimeline host{over_time(usage.rss, series.time_ns, series.rss_bytes, points),
                    over_time(usage.pss, series.time_ns, series.pss_bytes, points)};
  return host.rss || host.pss ? std::optional(std::move(host)) : std::nullopt;
}

}  // namespace tidemark
