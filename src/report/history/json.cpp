#include "report/history/json.h"

#include "report/common/json_parts.h"

namespace tidemark {
namespace {

Json process_json(const HistoryProcess& process) {
  return {{"pid", process.pid},         {"name", nullable_text(process.name)}, {"first_ms", process.first_ms},
          {"last_ms", process.last_ms}, {"peak_bytes", process.peak_bytes},    {"peak_at_ms", process.peak_ms}};
}

Json device_json(const HistoryDevice& device) {
  Json processes = Json::array();
  for (const HistoryProcess& process : device.processes) processes.push_back(process_json(process));
  Json points = Json::array();
  for (const HistoryPoint& point : device.points) {
    points.push_back({{"time_ms", point.time_ms},
                      {"span_ms", point.span_ms},
                      {"high_bytes", point.high_bytes},
                      {"mean_bytes", point.mean_bytes}});
  }
  return {{"device", device.key},
          {"id", device.id},
          {"name", nullable_text(device.name)},
          {"limit_bytes", nullable(device.limit_bytes)},
          {"first_ms", device.first_ms},
          {"last_ms", device.last_ms},
          {"samples", device.samples},
          {"peak_bytes", device.peak_bytes},
          {"peak_at_ms", device.peak_ms},
          {"mean_bytes", device.mean_bytes},
          {"last_bytes", device.last_bytes},
          {"processes", std::move(processes)},
          {"more_processes", device.more_processes},
          {"points", std::move(points)}};
}

}  // namespace

std::string to_json(const History& history) {
  Json object;
  object["file"] = history.path;
  object["since_ms"] = nullable(history.since_ms);
  object["until_ms"] = history.until_ms;
  object["devices"] = Json::array();
  for (const HistoryDevice& device : history.devices) object["devices"].push_back(device_json(device));
  object["risk_changes"] = Json::array();
  for (const HistoryRisk& risk : history.risks) {
    object["risk_changes"].push_back({{"time_ms", risk.time_ms},
                                      {"device", risk.key},
                                      {"id", risk.device},
                                      {"before", risk.before},
                                      {"risk_level", risk.level},
                                      {"assessment", Json::parse(risk.assessment, nullptr, false)}});
    Json& assessment = object["risk_changes"].back()["assessment"];
    if (assessment.is_discarded()) assessment = nullptr;
  }
  object["earlier_risk_changes"] = history.earlier_risks;
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tidemark
