#include <utility>

#include "report/json/json.h"
#include "report/json/objects.h"

namespace tidemark {
namespace {

Json device_json(const TemporaryDevice& device) {
  Json rows = Json::array();
  for (const TemporaryRow& row : device.rows) {
    rows.push_back({{"bytes", row.bytes},
                    {"share", nullable(row.share)},
                    {"count", row.count},
                    {"largest_bytes", row.largest_bytes},
                    {"stack", stack_json(row.stack)}});
  }
  return {{"device", to_string(device.totals.device)},
          {"allocation_count", device.totals.allocation_count},
          {"total_bytes_allocated", device.totals.total_bytes_allocated},
          {"temporary_count", device.count},
          {"temporary_bytes", device.bytes},
          {"temporary_share", nullable(device.share)},
          {"peak_allocated_bytes", device.totals.peak_allocated_bytes},
          {"peak_allocated_at_ns", nullable(device.totals.peak_allocated_at_ns)},
          {"peak_without_bytes", device.peak_without_bytes},
          {"peak_without_at_ns", nullable(device.peak_without_at_ns)},
          {"saving_bytes", device.saving_bytes()},
          {"rows", std::move(rows)},
          {"other_rows", device.other_rows},
          {"other_count", device.other_count},
          {"other_bytes", device.other_bytes}};
}

}  // namespace

Json to_object(const Temporary& temporary) {
  Json object = recording_json(temporary.recording);
  object["within"] = temporary.within;
  object["devices"] = Json::array();
  for (const TemporaryDevice& device : temporary.devices) object["devices"].push_back(device_json(device));
  return object;
}

std::string to_json(std::span<const Temporary> results) {
  return print_all(results);
}

}  // namespace tidemark
