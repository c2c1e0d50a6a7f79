#include "report/common/json.h"

#include <string>
#include <utility>

#include "report/common/json_objects.h"

namespace tidemark {
namespace {

Json device_json(const TemporaryDevice& device) {
  Json rows = Json::array();
  for (const TemporaryRow& row : device.rows) {
    Json& json = rows.emplace_back(Json{{"bytes", row.bytes},
                                        {"share", nullable(row.share)},
                                        {"allocation_count", row.count},
                                        {"largest_bytes", row.largest_bytes}});
    if (row.owner) {
      json[std::string(name_in(kOwnerKindNames, row.owner->kind))] = nullable(row.owner->name);
    } else {
      json["stack"] = stack_json(row.stack);
    }
  }
  return {{"device", to_string(device.totals.device)},
          {"allocation_count", device.totals.allocation_count},
          {"total_allocated_bytes", device.totals.total_bytes_allocated},
          {"temporary_count", device.count},
          {"temporary_bytes", device.bytes},
          {"temporary_share", nullable(device.share)},
          {"peak_allocated_bytes", device.totals.peak_allocated_bytes},
          {"peak_allocated_at_ns", nullable(device.totals.peak_allocated_at_ns)},
          {"reduced_peak_bytes", device.reduced_peak_bytes},
          {"reduced_peak_at_ns", nullable(device.reduced_peak_at_ns)},
          {"avoidable_peak_bytes", device.avoidable_peak_bytes()},
          {"rows", std::move(rows)},
          {"other_row_count", device.other_rows},
          {"other_allocation_count", device.other_count},
          {"other_bytes", device.other_bytes}};
}

}  // namespace

Json to_object(const Temporary& temporary) {
  Json object = recording_json(temporary.recording);
  object["within"] = temporary.within;
  object["by"] = temporary.by ? name_in(kOwnerKindNames, *temporary.by) : "stack";
  object["devices"] = Json::array();
  for (const TemporaryDevice& device : temporary.devices) object["devices"].push_back(device_json(device));
  return object;
}

std::string to_json(std::span<const Temporary> results) {
  return print_all(results);
}

}  // namespace tidemark
