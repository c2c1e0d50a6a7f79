#include <utility>

#include "report/json/json.h"
#include "report/json/objects.h"

namespace tidemark {
namespace {

Json measures_json(const FragmentationMeasures& measures) {
  return {{"time_ns", measures.time_ns},
          {"allocated_bytes", measures.allocated},
          {"reserved_bytes", nullable(measures.reserved)},
          {"active_bytes", nullable(measures.active)},
          {"unused_share", nullable(measures.unused_share())},
          {"free_bytes", nullable(measures.free)},
          {"free_pieces", nullable(measures.free_pieces)},
          {"largest_free_bytes", nullable(measures.largest_free)},
          {"external_share", nullable(measures.external_share())},
          {"releasable_bytes", nullable(measures.releasable)},
          {"inactive_split_bytes", nullable(measures.inactive_split)},
          {"rounding_bytes", nullable(measures.rounding)}};
}

Json nullable_measures(const std::optional<FragmentationMeasures>& measures) {
  return measures ? measures_json(*measures) : Json(nullptr);
}

const char* name_of(MapPiece::Use use) {
  switch (use) {
    case MapPiece::Use::free:
      return "free";
    case MapPiece::Use::used:
      return "used";
    case MapPiece::Use::pending:
      return "pending";
  }
  return "";
}

// In shares, 0 to 1, as the measures themselves.
Json trend_json(const std::optional<ShareTrend>& trend) {
  if (!trend) return nullptr;
  return {{"change", trend->over_recording.value},
          {"low", trend->over_recording.low},
          {"high", trend->over_recording.high},
          {"moments", trend->moments},
          {"verdict", trend->rises()   ? "rises"
                      : trend->falls() ? "falls"
                                       : "unclear"}};
}

Json device_json(const FragmentationDevice& device) {
  Json over_time = Json::array();
  for (const FragmentationMeasures& measures : device.over_time) over_time.push_back(measures_json(measures));
  Json segments = Json::array();
  for (const MapSegment& segment : device.segments) segments.push_back(segment_json(segment));
  Json pinning = Json::array();
  for (const PinningStack& row : device.pinning) {
    pinning.push_back({{"pinned_free_bytes", row.pinned_free_bytes},
                       {"segments", row.segments},
                       {"blocks", row.blocks},
                       {"bytes", row.bytes},
                       {"stack", stack_json(row.stack)}});
  }
  Json sizes = Json::array();
  for (const SizeClass& row : device.sizes) {
    sizes.push_back({{"from_bytes", row.from},
                     {"allocations", row.allocations},
                     {"live_blocks", row.live_blocks},
                     {"live_bytes", row.live_bytes},
                     {"free_pieces", row.free_pieces},
                     {"free_bytes", row.free_bytes}});
  }
  return {{"device", to_string(device.totals.device)},
          {"peak_share", nullable(device.peak_share())},
          {"at_peak_allocated", nullable_measures(device.at_peak_allocated)},
          {"at_peak_reserved", nullable_measures(device.at_peak_reserved)},
          {"at_end", measures_json(device.at_end)},
          {"over_time", std::move(over_time)},
          {"unused_share_trend", trend_json(device.unused_trend)},
          {"external_share_trend", trend_json(device.external_trend)},
          {"at_moment", nullable_measures(device.at_moment)},
          {"segments", std::move(segments)},
          {"other_segments", device.other_segments},
          {"other_free_bytes", device.other_free_bytes},
          {"empty_segments", device.empty_segments},
          {"pinning_stacks", std::move(pinning)},
          {"other_pinning_stacks", device.other_pinning},
          {"sizes", std::move(sizes)}};
}

}  // namespace

Json segment_json(const MapSegment& segment) {
  Json pieces = Json::array();
  for (const MapPiece& piece : segment.pieces) {
    pieces.push_back({{"address", piece.address}, {"bytes", piece.size}, {"use", name_of(piece.use)}});
  }
  return {{"address", segment.address},
          {"bytes", segment.size},
          {"free_bytes", segment.bytes(MapPiece::Use::free)},
          {"expandable", segment.expandable},
          {"pieces", std::move(pieces)}};
}

Json to_object(const Fragmentation& fragmentation) {
  Json object = recording_json(fragmentation.recording);
  object["devices"] = Json::array();
  for (const FragmentationDevice& device : fragmentation.devices) object["devices"].push_back(device_json(device));
  return object;
}

std::string to_json(std::span<const Fragmentation> results) {
  return print_all(results);
}

}  // namespace tidemark
