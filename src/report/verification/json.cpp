#include "report/common/json.h"

#include <utility>

#include "analyze/plan/verification.h"
#include "report/common/json_parts.h"

namespace tidemark {
namespace {

Json peaks(const VerifiedPeaks& peaks) {
  return {{"peak_allocated_bytes", peaks.allocated},
          {"peak_reserved_bytes", peaks.reserved},
          {"allocation_count", peaks.allocations}};
}

Json event_or_null(const std::optional<Event>& event) {
  if (!event) return nullptr;
  return {{"kind", name_in(kEventKindNames, event->kind)},
          {"bytes", event->size},
          {"allocated_bytes", event->total_allocated},
          {"reserved_bytes", event->total_reserved}};
}

Json difference_or_null(const std::optional<EventDifference>& difference) {
  if (!difference) return nullptr;
  return {{"index", difference->index},
          {"planned", event_or_null(difference->planned)},
          {"real", event_or_null(difference->real)}};
}

}  // namespace

std::string to_json(const Verification& verification) {
  Json object = {{"equal", verification.equal},
                 {"within_tolerance", verification.within_tolerance},
                 {"tolerance_share", kVerifyTolerance},
                 {"devices", Json::array()}};
  for (const VerifiedDevice& device : verification.devices) {
    object["devices"].push_back({{"rank", nullable(device.rank)},
                                 {"device", to_string(device.device)},
                                 {"within_tolerance", device.within_tolerance},
                                 {"event_count", device.event_count},
                                 {"planned", peaks(device.planned)},
                                 {"real", peaks(device.real)},
                                 {"first_difference", difference_or_null(device.difference)}});
  }
  return print_json({std::move(object)});
}

}  // namespace tidemark
