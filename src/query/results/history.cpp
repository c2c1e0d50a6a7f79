#include "query/results/machine_results.h"
#include "query/results/monitors.h"

namespace tidemark {

template <typename Visitor>
void describe(Visitor& v, const HistoryProcess& process) {
  v.type("HistoryProcess", "A process on a device. Times are Unix times.");
  v.field("pid", process.pid);
  v.field("name", known_text(process.name));
  v.field("first_ms", process.first_ms);
  v.field("last_ms", process.last_ms);
  v.field("peak_bytes", process.peak_bytes);
  v.field("peak_at_ms", process.peak_ms);
}

template <typename Visitor>
void describe(Visitor& v, const HistoryPoint& point) {
  v.type("HistoryPoint", "A stretch of time.");
  v.field("time_ms", point.time_ms, "when it begins");
  v.field("span_ms", point.span_ms);
  v.field("high_bytes", point.high_bytes);
  v.field("mean_bytes", point.mean_bytes);
}

template <typename Visitor>
void describe(Visitor& v, const HistoryDevice& device) {
  v.type("HistoryDevice", "A GPU, or the host's memory.");
  v.field("device", device.key);
  v.field("id", device.id, R"(UUID, PCI address, or "host")");
  v.field("name", known_text(device.name));
  v.field("limit_bytes", device.limit_bytes, "the latest one");
  v.field("first_ms", device.first_ms);
  v.field("last_ms", device.last_ms);
  v.field("samples", device.samples);
  v.field("peak_bytes", device.peak_bytes);
  v.field("peak_at_ms", device.peak_ms);
  v.field("mean_bytes", device.mean_bytes);
  v.field("last_bytes", device.last_bytes);
  v.field("processes", device.processes, "highest peak first");
  v.field("more_processes", device.more_processes);
  v.field("points", device.points);
}

template <typename Visitor>
void describe(Visitor& v, const HistoryRisk& risk) {
  v.type("HistoryRisk", "A change of a risk, as it was kept.");
  v.field("time_ms", risk.time_ms);
  v.field("device", risk.key);
  v.field("id", risk.device);
  v.field("before", risk.before);
  v.field("risk_level", risk.level);
  v.field(
      "assessment",
      [&] {
        Json assessment = Json::parse(risk.assessment, nullptr, false);
        return WrittenAs<RiskChange>{assessment.is_discarded() ? Json(nullptr) : std::move(assessment)};
      },
      "null where it cannot be read");
}

template <typename Visitor>
void describe(Visitor& v, const History& history) {
  v.type("History", "What monitors saw in the past.");
  v.field("file", history.path);
  v.field("since_ms", history.since_ms);
  v.field("until_ms", history.until_ms);
  v.field("devices", history.devices);
  v.field("risk_changes", history.risks, "the latest ones, in order of time");
  v.field("earlier_risk_changes", history.earlier_risks);
}
TIDEMARK_DESCRIBED(History);

}  // namespace tidemark
