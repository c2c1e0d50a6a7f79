#include <utility>

#include "report/json/json.h"
#include "report/json/objects.h"
#include "report/words/simulation.h"

namespace tidemark {
namespace {

Json measures_json(const FragmentationMeasures& measures) {
  return {{"time_ns", measures.time_ns},
          {"allocated_bytes", measures.allocated},
          {"reserved_bytes", nullable(measures.reserved)},
          {"active_bytes", nullable(measures.active)},
          {"unused_share", nullable(measures.unused_share())},
          {"free_bytes", nullable(measures.free)},
          {"free_block_count", nullable(measures.free_blocks)},
          {"largest_free_block_bytes", nullable(measures.largest_free)},
          {"external_fragmentation", nullable(measures.external_share())},
          {"releasable_bytes", nullable(measures.releasable)},
          {"inactive_split_bytes", nullable(measures.inactive_split)},
          {"rounding_bytes", nullable(measures.rounding)}};
}

Json nullable_measures(const std::optional<FragmentationMeasures>& measures) {
  return measures ? measures_json(*measures) : Json(nullptr);
}

// In shares, 0 to 1, as the measures themselves.
Json trend_json(const std::optional<ShareTrend>& trend) {
  if (!trend) return nullptr;
  return {{"change", trend->over_recording.value},
          {"low", trend->over_recording.low},
          {"high", trend->over_recording.high},
          {"point_count", trend->points},
          {"verdict", trend->rises()   ? "rises"
                      : trend->falls() ? "falls"
                                       : "unclear"}};
}

Json pinning_json(const std::vector<PinningStack>& rows) {
  Json list = Json::array();
  for (const PinningStack& row : rows) {
    list.push_back({{"pinned_free_bytes", row.pinned_free_bytes},
                    {"segment_count", row.segments},
                    {"block_count", row.blocks},
                    {"bytes", row.bytes}});
    add_key(list.back(), row.stack);
  }
  return list;
}

Json device_json(const FragmentationDevice& device) {
  Json over_time = Json::array();
  for (const FragmentationMeasures& measures : device.over_time) over_time.push_back(measures_json(measures));
  Json segments = Json::array();
  for (const MapSegment& segment : device.segments) segments.push_back(segment_json(segment));
  Json sizes = Json::array();
  for (const SizeClass& row : device.sizes) {
    sizes.push_back({{"min_bytes", row.from},
                     {"allocation_count", row.allocations},
                     {"live_block_count", row.live_blocks},
                     {"live_bytes", row.live_bytes},
                     {"free_block_count", row.free_blocks},
                     {"free_bytes", row.free_bytes}});
  }
  return {{"device", to_string(device.totals.device)},
          {"peak_unused_share", nullable(device.peak_share())},
          {"at_peak_allocated", nullable_measures(device.at_peak_allocated)},
          {"at_peak_reserved", nullable_measures(device.at_peak_reserved)},
          {"at_end", measures_json(device.at_end)},
          {"over_time", std::move(over_time)},
          {"unused_share_trend", trend_json(device.unused_trend)},
          {"external_fragmentation_trend", trend_json(device.external_trend)},
          {"at_moment", nullable_measures(device.at_moment)},
          {"segments", std::move(segments)},
          {"other_segment_count", device.other_segments},
          {"other_segments_free_bytes", device.other_free_bytes},
          {"empty_segment_count", device.empty_segments},
          {"pinning_stacks", pinning_json(device.pinning)},
          {"other_pinning_stack_count", device.other_pinning},
          {"pinning_categories", pinning_json(device.pinning_categories)},
          {"size_classes", std::move(sizes)}};
}

}  // namespace

Json segment_json(const MapSegment& segment) {
  Json blocks = Json::array();
  for (const MapBlock& block : segment.blocks) {
    blocks.push_back({{"address", block.address}, {"bytes", block.size}, {"state", name_of(block.state)}});
  }
  return {{"address", segment.address},
          {"bytes", segment.size},
          {"free_bytes", segment.bytes(MapBlock::State::free)},
          {"expandable", segment.expandable},
          {"blocks", std::move(blocks)}};
}

Json to_object(const Fragmentation& fragmentation) {
  Json object = recording_json(fragmentation.recording);
  object["devices"] = Json::array();
  for (const FragmentationDevice& device : fragmentation.devices) object["devices"].push_back(device_json(device));
  object["simulation"] =
      fragmentation.simulation ? Json(cited_simulation_text(*fragmentation.simulation)) : Json(nullptr);
  return object;
}

std::string to_json(std::span<const Fragmentation> results) {
  return print_all(results);
}

}  // namespace tidemark
