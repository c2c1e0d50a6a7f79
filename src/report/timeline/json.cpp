#include "report/common/json.h"

#include <utility>

#include "query/words/attribution.h"
#include "report/common/json_objects.h"

namespace tidemark {
namespace {

Json over_time_json(const std::optional<SampledOverTime>& sampled) {
  if (!sampled) return nullptr;
  Json object = sampled_json(*sampled);
  object["points"] = Json::array();
  for (const TimedBytes& point : sampled->points) {
    object["points"].push_back({{"time_ns", point.time_ns}, {"bytes", point.bytes}});
  }
  return object;
}

Json host_json(const HostTimeline& host) {
  Json resident = Json::array();
  for (const ResidentPoint& point : host.resident) {
    resident.push_back({{"time_ns", point.time_ns},
                        {"anon_bytes", point.anon_bytes},
                        {"file_bytes", point.file_bytes},
                        {"shmem_bytes", point.shmem_bytes}});
  }
  return {{"rss", over_time_json(host.rss)}, {"pss", over_time_json(host.pss)}, {"resident", std::move(resident)}};
}

void add_split_json(Json& object, const TimelineLayers& split) {
  Json layers = Json::array();
  for (const TimelineLayers::Layer& layer : split.layers) {
    Json fields = Json::object();
    if (split.by) {
      fields[std::string(name_in(kOwnerKindNames, *split.by))] = nullable(layer.owner.name);
    } else {
      fields["stack"] = stack_json(layer.stack);
    }
    fields["held_bytes"] = layer.bytes;
    layers.push_back(std::move(fields));
  }
  object[split.by ? plural_of(*split.by) : "call_sites"] = std::move(layers);
  object[split.by ? "other_owners_held_bytes" : "other_held_bytes"] = split.other;  // a page has both
  object["unrecorded_held_bytes"] = split.unrecorded;
}

void add_bands_json(Json& object, const TimelineBands& bands) {
  object["steps"] = Json::array();
  for (const TimelineStep& step : bands.steps) {
    object["steps"].push_back({{"step", step.number}, {"begin_ns", step.begin_ns}});
  }
  object["phases"] = nullptr;
  if (!bands.phases) return;
  object["phases"] = Json::array();
  for (const TimelinePhase& phase : *bands.phases) {
    object["phases"].push_back(
        {{"phase", name_in(kPhaseNames, phase.phase)}, {"begin_ns", phase.begin_ns}, {"end_ns", phase.end_ns}});
  }
}

}  // namespace

Json to_object(const Timeline& timeline) {
  Json object = recording_json(timeline.recording);
  object["devices"] = Json::array();
  for (const TimelineSeries& series : timeline.series) {
    Json points = Json::array();
    for (const TimelinePoint& point : series.points) {
      points.push_back({{"time_ns", point.time_ns},
                        {"allocated_bytes", point.allocated_bytes},
                        {"reserved_bytes", nullable(point.reserved_bytes)},
                        {"active_bytes", nullable(point.active_bytes)},
                        {"driver_bytes", nullable(point.driver_bytes)}});
    }
    object["devices"].push_back({{"device", to_string(series.device)},
                                 {"peak_allocated_bytes", series.peak_allocated_bytes},
                                 {"peak_allocated_at_ns", nullable(series.peak_allocated_at_ns)},
                                 {"peak_reserved_bytes", nullable(series.peak_reserved_bytes)},
                                 {"peak_active_bytes", nullable(series.peak_active_bytes)},
                                 {"peak_driver_bytes", nullable(series.peak_driver_bytes)},
                                 {"peak_driver_at_ns", nullable(series.peak_driver_at_ns)},
                                 {"points", std::move(points)}});
    for (const TimelineLayers& split : series.splits) add_split_json(object["devices"].back(), split);
  }
  object["out_of_memory"] = Json::array();
  for (const TimelineOutOfMemory& failure : timeline.out_of_memory) {
    object["out_of_memory"].push_back({{"device", to_string(failure.device)},
                                       {"time_ns", failure.time_ns},
                                       {"requested_bytes", failure.requested_bytes}});
  }
  add_bands_json(object, timeline.bands);
  object["pauses"] = Json::array();
  for (const Pause& pause : timeline.pauses) {
    object["pauses"].push_back({{"begin_ns", pause.begin_ns}, {"end_ns", pause.end_ns}});
  }
  object["host"] = timeline.host ? host_json(*timeline.host) : Json(nullptr);
  return object;
}

std::string to_json(std::span<const Timeline> timelines) {
  return print_all(timelines);
}

}  // namespace tidemark
