#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "query/results/common.h"
#include "query/results/results.h"
#include "query/words/attribution.h"

namespace tidemark {

template <typename Visitor>
void describe(Visitor& v, const TimelinePoint& point) {
  v.type("TimelinePoint", "A device's memory at one time.");
  v.field("time_ns", point.time_ns);
  v.field("allocated_bytes", point.allocated_bytes);
  v.field("reserved_bytes", point.reserved_bytes);
  v.field("active_bytes", point.active_bytes);
  v.field("driver_bytes", point.driver_bytes, "allocated by libraries from the driver; null where it was not recorded");
}

template <typename Visitor>
void describe(Visitor& v, const TimelineLayers::Layer& layer, const TimelineLayers& split) {
  v.type("TimelineLayer", "What a stack or owner held at each of the points.");
  v.part(HolderKey{&layer.stack, split.by ? &layer.owner : nullptr});
  v.field("held_bytes", layer.bytes, "a number for each point");
}

namespace {

// The splits of a device's memory in their order, then the possible further ones: owners, or nullopt for call sites.
std::vector<std::optional<OwnerKind>> in_order(const std::vector<TimelineLayers>& splits) {
  std::vector<std::optional<OwnerKind>> by;
  for (const TimelineLayers& split : splits) by.push_back(split.by);
  std::vector<std::optional<OwnerKind>> all = {std::nullopt};
  for (const EnumName<OwnerKind>& kind : kOwnerKindNames) all.emplace_back(kind.value);
  for (const std::optional<OwnerKind>& one : all) {
    if (std::find(by.begin(), by.end(), one) == by.end()) by.push_back(one);
  }
  return by;
}

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const TimelineSeries& series) {
  v.type("TimelineDevice", "Memory of one device over time; layers by what was asked for, the others are absent.");
  v.field("device", to_string(series.device));
  v.field("peak_allocated_bytes", series.peak_allocated_bytes);
  v.field("peak_allocated_at_ns", series.peak_allocated_at_ns);
  v.field("peak_reserved_bytes", series.peak_reserved_bytes);
  v.field("peak_active_bytes", series.peak_active_bytes);
  v.field("peak_driver_bytes", series.peak_driver_bytes);
  v.field("peak_driver_at_ns", series.peak_driver_at_ns);
  v.field("capacity_bytes", series.capacity_bytes, "total memory of the GPU; null: unknown");
  v.field("points", series.points, "in order of time, with every peak; the last one is at the end");
  bool first = true;
  for (const std::optional<OwnerKind>& by : in_order(series.splits)) {
    static const TimelineLayers kNone;
    const auto found = std::find_if(series.splits.begin(), series.splits.end(),
                                    [&](const TimelineLayers& split) { return split.by == by; });
    const bool present = found != series.splits.end();
    const TimelineLayers& split = present ? *found : kNone;
    v.field_if(present, by ? plural_of(*by) : "call_sites", in(split.layers, split),
               "those that held most at the peak, most first; categories and phases: all, in their order");
    v.field_if(present, by ? "other_owners_held_bytes" : "other_held_bytes", split.other,
               "by the others, at each point");
    v.field_if(present && first, "unrecorded_held_bytes", split.unrecorded, "in no recorded block, at each point");
    first = false;
  }
}

template <typename Visitor>
void describe(Visitor& v, const TimelineOutOfMemory& failure) {
  v.type("TimelineOutOfMemory", "A request that failed.");
  v.field("device", to_string(failure.device));
  v.field("time_ns", failure.time_ns);
  v.field("requested_bytes", failure.requested_bytes);
}

template <typename Visitor>
void describe(Visitor& v, const TimelineStep& step) {
  v.type("TimelineStep", "The beginning of a training step.");
  v.field("step", step.number, "as `leaks` counts them, from 0; of more than --points every second, fifth, tenth, ...");
  v.field("begin_ns", step.begin_ns);
}

template <typename Visitor>
void describe(Visitor& v, const TimelinePhase& phase) {
  v.type("TimelinePhase", "A stretch of one phase of the training steps.");
  v.field("phase", named<kPhaseNames, Phase::other>(phase.phase));
  v.field("begin_ns", phase.begin_ns);
  v.field("end_ns", phase.end_ns);
}

template <typename Visitor>
void describe(Visitor& v, const Pause& pause) {
  v.type("TimelinePause", "A time in which the program had switched recording off.");
  v.field("begin_ns", pause.begin_ns);
  v.field("end_ns", pause.end_ns);
}

template <typename Visitor>
void describe(Visitor& v, const TimedBytes& point) {
  v.type("TimedBytes", "A sample.");
  v.field("time_ns", point.time_ns);
  v.field("bytes", point.bytes);
}

template <typename Visitor>
void describe(Visitor& v, const SampledOverTime& sampled) {
  v.type("SampledOverTime", "A sampled value over time.");
  v.part(static_cast<const SampledBytes&>(sampled));
  v.field("points", sampled.points);
}

template <typename Visitor>
void describe(Visitor& v, const ResidentPoint& point) {
  v.type("ResidentPoint", "What the resident memory of the process consists of, in a sample.");
  v.field("time_ns", point.time_ns);
  v.field("anon_bytes", point.anon_bytes);
  v.field("file_bytes", point.file_bytes);
  v.field("shmem_bytes", point.shmem_bytes);
}

template <typename Visitor>
void describe(Visitor& v, const HostTimeline& host) {
  v.type("HostOverTime", "Memory of the process on the host.");
  v.field("rss", host.rss);
  v.field("pss", host.pss);
  v.field("resident", host.resident, "what RSS holds; empty: not known");
}

template <typename Visitor>
void describe(Visitor& v, const Timeline& timeline) {
  v.type("Timeline", "Allocated and reserved memory over time.");
  v.part(timeline.recording);
  v.field("devices", timeline.series);
  v.field("out_of_memory", timeline.out_of_memory);
  v.field("steps", timeline.bands.steps, "of training; empty: not known");
  v.field("phases", timeline.bands.phases, "without stretches in no phase; null: more than --points");
  v.field("pauses", timeline.pauses);
  v.field("host", timeline.host, "null: not sampled");
}
TIDEMARK_DESCRIBED(Timeline);

}  // namespace tidemark
