#include <utility>

#include "report/json/json.h"
#include "report/json/objects.h"

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

void add_call_sites_json(Json& object, const CallSiteLayers& layers) {
  object["call_sites"] = Json::array();
  for (const CallSiteLayers::Layer& layer : layers.call_sites) {
    object["call_sites"].push_back({{"stack", stack_json(layer.stack)}, {"held_bytes", layer.bytes}});
  }
  object["other_held_bytes"] = layers.other;
  object["unrecorded_held_bytes"] = layers.unrecorded;
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
    if (series.by_call_site) add_call_sites_json(object["devices"].back(), *series.by_call_site);
  }
  object["out_of_memory"] = Json::array();
  for (const TimelineOutOfMemory& failure : timeline.out_of_memory) {
    object["out_of_memory"].push_back({{"device", to_string(failure.device)},
                                       {"time_ns", failure.time_ns},
                                       {"requested_bytes", failure.requested_bytes}});
  }
  object["pauses"] = Json::array();
  for (const Pause& pause : timeline.pauses) {
    object["pauses"].push_back({{"begin_ns", pause.begin_ns}, {"end_ns", pause.end_ns}});
  }
  object["host"] = timeline.host
                       ? Json{{"rss", over_time_json(timeline.host->rss)}, {"pss", over_time_json(timeline.host->pss)}}
                       : Json(nullptr);
  return object;
}

std::string to_json(std::span<const Timeline> timelines) {
  return print_all(timelines);
}

}  // namespace tidemark
