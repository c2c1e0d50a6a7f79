#include "report/host_ledger/json.h"

#include <utility>

#include "report/common/json.h"
#include "report/common/json_objects.h"
#include "report/ledger/words.h"

namespace tidemark {
namespace {

Json line_json(const LedgerLine& line) {
  Json object = {{"part", name_of(line.part)}, {"bytes", nullable(line.bytes)}};
  if (line.part == LedgerPart::library) object["name"] = line.name;
  if (line.part == LedgerPart::process) {
    object["name"] = nullable_text(line.name);
    object["pid"] = line.pid;
    object["kind"] = name_of(line.process_kind);
  }
  return object;
}

Json point_json(const LedgerPoint& point) {
  return {{"time_ns", point.time_ns},
          {"used_bytes", point.used_bytes},
          {"allocated_bytes", nullable(point.allocated_bytes)},
          {"cached_bytes", nullable(point.cached_bytes)},
          {"library_bytes", point.library_bytes},
          {"other_library_bytes", point.other_library_bytes},
          {"context_bytes", nullable(point.context_bytes)},
          {"process_bytes", nullable(point.process_bytes)}};
}

Json device_json(const LedgerDevice& device) {
  Json points = Json::array();
  for (const LedgerPoint& point : device.points) points.push_back(point_json(point));
  return {{"device", device.device},
          {"model", nullable_text(device.model)},
          {"total_bytes", nullable(device.total_bytes)},
          {"ledger", ledger_json(device.breakdown)},
          {"libraries", device.libraries},
          {"points", std::move(points)}};
}

}  // namespace

Json ledger_json(const LedgerBreakdown& ledger) {
  Json lines = Json::array();
  for (const LedgerLine& line : ledger.lines) lines.push_back(line_json(line));
  Json caveats = Json::array();
  for (const LedgerCaveat caveat : ledger.caveats)
    caveats.push_back({{"kind", name_of(caveat)}, {"text", caveat_words(caveat, ledger)}});
  return {{"time_ns", nullable(ledger.time_ns)},
          {"used_bytes", nullable(ledger.used_bytes)},
          {"lines", std::move(lines)},
          {"unexplained_bytes", nullable(ledger.unexplained_bytes)},
          {"allocated_bytes", nullable(ledger.allocated_bytes)},
          {"cached_bytes", nullable(ledger.cached_bytes)},
          {"managed_bytes", nullable(ledger.managed_bytes)},
          {"pinned_host_bytes", nullable(ledger.pinned_host_bytes)},
          {"processes_sampled_at_ns", nullable(ledger.processes_sampled_at_ns)},
          {"transient_peak_bytes", nullable(ledger.transient_peak_bytes)},
          {"caveats", std::move(caveats)}};
}

Json to_object(const Ledger& ledger) {
  Json object = recording_json(ledger.recording);
  object["devices"] = Json::array();
  for (const LedgerDevice& device : ledger.devices) object["devices"].push_back(device_json(device));
  object["host"] = ledger.host ? Json{{"ledger", host_ledger_json(ledger.host->breakdown)},
                                      {"killed", kills_json(ledger.host->kills)},
                                      {"points", host_points_json(ledger.host->points)}}
                               : Json(nullptr);
  return object;
}

std::string to_json(std::span<const Ledger> ledgers) {
  return print_all(ledgers);
}

}  // namespace tidemark
