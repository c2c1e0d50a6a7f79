#include "report/common/json.h"

#include <cmath>
#include <utility>

#include "base/units.h"
#include "report/common/json_objects.h"
#include "report/fragmentation/unused_memory.h"
#include "report/simulation/words.h"

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

template <typename Trend>
const char* verdict_of(const Trend& trend) {
  return trend.rises() ? "rises" : trend.falls() ? "falls" : "unclear";
}

// In shares, 0 to 1, as the measures themselves.
Json trend_json(const std::optional<ShareTrend>& trend) {
  if (!trend) return nullptr;
  return {{"change", trend->over_recording.value}, {"low", trend->over_recording.low},
          {"high", trend->over_recording.high},    {"point_count", trend->points},
          {"begin_ns", trend->begin_ns},           {"end_ns", trend->end_ns},
          {"verdict", verdict_of(*trend)}};
}

Json byte_trend_json(const std::optional<ByteTrend>& trend) {
  if (!trend) return nullptr;
  return {{"change_bytes", std::llround(trend->change.value)},
          {"low_bytes", std::llround(trend->change.low)},
          {"high_bytes", std::llround(trend->change.high)},
          {"mb_per_minute", trend->change.value / trend->seconds() * 60 / static_cast<double>(kMiB)},
          {"begin_ns", trend->begin_ns},
          {"end_ns", trend->end_ns},
          {"verdict", verdict_of(*trend)}};
}

Json forecast_json(const UnusedMemory& unused) {
  const auto& time = unused.seconds_to_limit;
  return {{"device_free_bytes", nullable(unused.device_free)},
          {"predicted_oom_time_seconds", time ? Json(time->expected) : Json(nullptr)},
          {"earliest_seconds", time ? Json(time->earliest) : Json(nullptr)},
          {"latest_seconds", time ? nullable(time->latest) : Json(nullptr)},
          {"text", unused_forecast_text(unused)}};
}

Json unused_json(const UnusedMemory& unused) {
  const auto if_known = [&](auto value) { return unused.known() ? Json(value) : Json(nullptr); };
  const bool held = unused.pattern == UnusedPattern::held_peak;
  return {{"pattern", name_of(unused.pattern)},
          {"pattern_text", unused_pattern_text(unused)},
          {"verdict", fragmentation_verdict(unused)},
          {"is_fragmented", if_known(is_fragmented(unused))},
          {"change_count", unused.changes},
          {"since_ns", if_known(unused.since_ns)},
          {"reserved_bytes", if_known(unused.reserved)},
          {"idle_since_ns", if_known(unused.idle_since_ns)},
          {"idle_bytes", if_known(unused.idle)},
          {"idle_share", if_known(unused.idle_share())},
          {"period_seconds", nullable(unused.period_seconds)},
          {"peak_allocated_bytes", held ? Json(unused.peak_allocated) : Json(nullptr)},
          {"peak_at_ns", held ? Json(unused.peak_at_ns) : Json(nullptr)},
          {"later_allocated_bytes", held ? Json(unused.later_allocated) : Json(nullptr)},
          {"trend", byte_trend_json(unused.trend)},
          {"forecast", forecast_json(unused)}};
}

Json fragmentation_advice_json(const FragmentationDevice& device, const std::string& file) {
  Json list = Json::array();
  for (const FragmentationAdvice& advice : device.advice) {
    const FragmentationAdviceText words = advice_text(advice, device.unused, file);
    list.push_back({{"kind", name_of(advice.kind)},
                    {"change", words.change},
                    {"reason", words.reason},
                    {"avoidable_bytes", advice.bytes},
                    {"settings", nullable_text(words.settings)},
                    {"check", words.check}});
  }
  return list;
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

Json device_json(const FragmentationDevice& device, const std::string& file) {
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
          {"unused_share_trend", trend_json(device.unused.share_trend)},
          {"external_fragmentation_trend", trend_json(device.external_trend)},
          {"unused_memory", unused_json(device.unused)},
          {"advice", fragmentation_advice_json(device, file)},
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
  for (const FragmentationDevice& device : fragmentation.devices) {
    object["devices"].push_back(device_json(device, fragmentation.recording.path));
  }
  object["simulation"] =
      fragmentation.simulation ? Json(cited_simulation_text(*fragmentation.simulation)) : Json(nullptr);
  return object;
}

std::string to_json(std::span<const Fragmentation> results) {
  return print_all(results);
}

}  // namespace tidemark
