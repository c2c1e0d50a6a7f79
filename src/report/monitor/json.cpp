#include "report/monitor/json.h"

#include "base/units.h"
#include "query/results/common.h"
#include "query/results/results.h"
#include "report/monitor/json_parts.h"
#include "report/monitor/risk.h"
#include "report/monitor/words.h"

namespace tidemark {
namespace {

Json percent_or_null(const std::optional<double>& value) {
  return nullable(value);
}

// A device without samples has no assessment, and says so in the recommendation.
Json assessment_json(const std::optional<std::uint64_t>& assessed_at_ns, const RiskAssessment& risk,
                     const std::string& recommendation) {
  Json object = risk_json(risk, recommendation);
  if (assessed_at_ns) return object;
  for (auto& [key, value] : object.items()) {
    if (key != "recommendation") value = nullptr;
  }
  return object;
}

// Null where there is no peak.
Json peak_is_json(const WatchedUsage& used) {
  if (used.empty()) return nullptr;
  return used.peak_is_sampled() ? "sampled" : "recorded";
}

Json device_risk_json(const WatchedDevice& device, const MachineState& state) {
  return assessment_json(device.assessed_at_ns, device.risk, recommendation_text(device, state));
}

Json profile_device_json(const WatchedDevice& device, const WatchRun& run) {
  Json object;
  object["current_memory"] = current_memory_json(device);
  object["peak_memory"] = device.used.empty() ? Json(nullptr) : Json(device.used.peak_bytes());
  object["statistics"] = {{"avg_utilization", percent_or_null(device.used_percent.mean())},
                          {"max_utilization", percent_or_null(device.used_percent.most())},
                          {"avg_fragmentation", nullable(run.unused_share(device.key))},
                          {"num_snapshots", device.used.sample_count()}};
  object.update(device_identity_json(device));
  object["peak_at_seconds"] =
      device.used.empty() ? Json(nullptr) : Json(static_cast<double>(device.used.peak_at_ns()) / 1e9);
  object["peak_is"] = peak_is_json(device.used);
  object["driver_reserved_bytes"] = nullable(device.latest.driver_reserved_bytes);
  object["gpu_utilization_percent"] = {{"avg", nullable(device.utilization_percent.mean())},
                                       {"max", nullable(device.utilization_percent.most())}};
  object["temperature_celsius"] = nullable(device.latest.temperature_celsius);
  object["power_milliwatts"] = nullable(device.latest.power_milliwatts);
  object["history"] = history_json(device.used);
  return object;
}

Json change_json(const RiskChange& change) {
  return {{"timestamp", iso_time(change.wall_ns)},
          {"device", change.device},
          {"name", nullable_text(change.name)},
          {"before", name_of(change.before)},
          {"change", change_text(change)},
          {"limit_bytes", nullable(change.limit_bytes)},
          {"risk_assessment", risk_json(change.now, recommendation_text(change))}};
}

Json growth_json(const MemoryGrowth& growth, const WatchRun& run) {
  const MachineState& state = run.state;
  const bool of_process =
      growth.memory == GrowingMemory::process_device || growth.memory == GrowingMemory::process_host;
  const bool of_device = growth.memory == GrowingMemory::device || growth.memory == GrowingMemory::process_device;
  const double mib = static_cast<double>(kMiB);
  Json object;
  object["memory"] = name_of(growth.memory);
  object["title"] = growing_memory_text(growth, run);
  object["device"] = of_device ? Json(state.devices[growth.device].key) : Json(nullptr);
  object["pid"] = of_process ? Json(state.processes[growth.process].pid) : Json(nullptr);
  object["measure"] = growth.memory != GrowingMemory::process_host ? "used" : growth.is_pss ? "pss" : "rss";
  if (growth.memory == GrowingMemory::allocated) {
    const RecordedProcess& process = run.recorded[growth.process];
    object["device"] = to_string(process.devices[growth.device].device);
    object["pid"] = process.recording.pid;
    object["measure"] = "allocated";
  }
  object["verdict"] = name_of(growth.verdict);
  const bool known = growth.verdict != GrowthVerdict::unknown;
  const LiveGrowth* found = growth.growth ? &*growth.growth : nullptr;
  const auto in_mib = [&](double bytes) { return found != nullptr ? Json(bytes / mib) : Json(nullptr); };
  object["growth_mb_per_minute"] = known ? Json(growth.bytes_per_minute() / mib) : Json(nullptr);
  object["growth_mb_per_minute_low"] = in_mib(found != nullptr ? found->bytes_per_minute.low : 0);
  object["growth_mb_per_minute_high"] = in_mib(found != nullptr ? found->bytes_per_minute.high : 0);
  object["growth_bytes_per_step"] =
      found != nullptr && found->bytes_per_step ? Json(found->bytes_per_step->value) : Json(nullptr);
  object["classification"] = found != nullptr ? Json(name_of(found->classification)) : Json(nullptr);
  object["first_bytes"] = growth.first_bytes;
  object["last_bytes"] = growth.last_bytes;
  object["peak_bytes"] = growth.peak_bytes;
  object["evidence"] = {{"sample_count", growth.sample_count},
                        {"span_seconds", growth.span_seconds},
                        {"growth_seconds", found != nullptr ? Json(found->seconds) : Json(nullptr)},
                        {"step_count", found != nullptr ? nullable(found->steps) : Json(nullptr)},
                        {"growing_count", found != nullptr ? Json(found->grown_steps) : Json(nullptr)},
                        {"analyzed_count", found != nullptr ? Json(found->analyzed_steps) : Json(nullptr)}};
  return object;
}

Json by_stack_json(const RecordedLeaks& of) {
  Json rows = Json::array();
  for (const GrowingSource& source : of.sources) {
    const LiveGrowth& growth = source.growth;
    rows.push_back({{"device", to_string(source.device)},
                    {"stack", JsonObject::json_of(known(source.stack))},
                    {"growth_mb_per_minute", growth.bytes_per_minute.value / static_cast<double>(kMiB)},
                    {"growth_bytes_per_step", growth.bytes_per_step ? Json(growth.bytes_per_step->value) : Json()},
                    {"growing_step_count", growth.grown_steps},
                    {"analyzed_step_count", growth.analyzed_steps},
                    {"held_bytes", growth.held_bytes}});
  }
  return rows;
}

Json by_module_json(const RecordedLeaks& of) {
  Json rows = Json::array();
  for (const GrowingModule& module : of.modules) {
    rows.push_back({{"device", to_string(module.device)},
                    {"module", nullable(module.module)},
                    {"growth_mb_per_minute", module.bytes_per_minute / static_cast<double>(kMiB)},
                    {"growth_bytes_per_step", nullable(module.bytes_per_step)},
                    {"held_bytes", module.held_bytes}});
  }
  return rows;
}

Json object_types_json(const RecordedLeaks& of) {
  if (!of.objects) return nullptr;
  Json rows = Json::array();
  for (const GrowingType& type : of.types) {
    rows.push_back({{"kind", type.kind},
                    {"type", nullable_text(type.type)},
                    {"storage_count", type.storages},
                    {"bytes", type.bytes},
                    {"native_count", type.native},
                    {"chains", type.chains}});
  }
  return rows;
}

Json objects_json(const RecordedLeaks& of) {
  if (!of.objects) return nullptr;
  return {{"count", of.objects->new_storages},
          {"bytes", of.objects->new_bytes},
          {"asked_about", of.objects->storages.size()},
          {"seconds_to_answer", of.objects->seconds},
          {"stopped_after_seconds", nullable(of.objects->stopped_after_seconds)},
          {"notes", of.objects->notes}};
}

Json tracking_json(const LeakReport& report) {
  Json object = {{"enabled", report.tracking}, {"sources", nullptr}, {"unknown_because", nullptr}};
  if (!report.tracking) return object;
  if (report.by_stack.empty()) {
    object["unknown_because"] = kNoTracking;
    return object;
  }
  object["sources"] = Json::array();
  for (const RecordedLeaks& of : report.by_stack) {
    const LiveRecording& recording = report.recorded[of.process].recording;
    object["sources"].push_back({{"pid", recording.pid},
                                 {"command", recording.command},
                                 {"leaks", to_object(of.leaks)},
                                 {"by_stack", by_stack_json(of)},
                                 {"other_stack_count", of.other_sources},
                                 {"by_module", by_module_json(of)},
                                 {"object_types", object_types_json(of)},
                                 {"object_types_unknown_because", nullable_text(of.objects_unknown)},
                                 {"new_storages", objects_json(of)}});
  }
  return object;
}

}  // namespace

std::string to_json(const ProfileReport& report) {
  Json object = run_json(report, report.marks ? "interactive" : "profile");
  if (report.marks) object["ended_by"] = nullptr;
  object["devices"] = Json::object();
  for (const WatchedDevice& device : report.state.devices) {
    Json& row = object["devices"][device.key] = profile_device_json(device, report);
    if (report.has_risks) row["risk_assessment"] = device_risk_json(device, report.state);
  }
  object["processes"] = processes_json(report.state);
  object["recorded"] = recorded_json(report);
  object["host"] = host_json(report.state.host);
  if (report.marks) {
    object["marks"] = Json::array();
    for (const WatchMark& mark : *report.marks) {
      object["marks"].push_back({{"seconds", static_cast<double>(mark.time_ns) / 1e9}, {"name", mark.name}});
    }
  }
  return print_report(object);
}

std::string to_json(const OomReport& report) {
  const MachineState& state = report.state;
  Json object = run_json(report, "oom");
  object["threshold_percent"] = report.threshold_percent;
  object["devices"] = Json::object();
  for (const WatchedDevice& device : state.devices) {
    Json row;
    row["risk_assessment"] = device_risk_json(device, state);
    row.update(device_identity_json(device));
    row["current_memory"] = current_memory_json(device);
    row["limit_bytes"] = nullable(device.limit_bytes());
    row["peak_memory"] = device.used.empty() ? Json(nullptr) : Json(device.used.peak_bytes());
    row["peak_is"] = peak_is_json(device.used);
    row["num_snapshots"] = device.used.sample_count();
    object["devices"][device.key] = std::move(row);
  }
  object["host"] = host_json(state.host);
  object["host"]["risk_assessment"] =
      assessment_json(state.host.assessed_at_ns, state.host.risk, host_recommendation_text(state));
  object["processes"] = processes_json(state);
  object["changes"] = Json::array();
  for (const RiskChange& change : report.changes) object["changes"].push_back(change_json(change));
  object["earlier_change_count"] = report.earlier_changes;
  return print_report(object);
}

std::string to_json(const LeakReport& report) {
  Json object = run_json(report, "leak");
  object["threshold_mb_per_minute"] = report.threshold_bytes_per_minute / static_cast<double>(kMiB);
  object["growing_count"] = std::count_if(report.growths.begin(), report.growths.end(), [](const MemoryGrowth& growth) {
    return growth.verdict == GrowthVerdict::growing;
  });
  object["growth"] = Json::array();
  for (const MemoryGrowth& growth : report.growths) object["growth"].push_back(growth_json(growth, report));
  object["tracking"] = tracking_json(report);
  object["processes"] = processes_json(report.state);
  object["host"] = host_json(report.state.host);
  return print_report(object);
}

std::string to_json(const FragmentReport& report) {
  Json object = run_json(report, "fragment");
  object["devices"] = Json::object();
  for (const WatchedDevice& device : report.state.devices) {
    Json row = device_identity_json(device);
    row["current_memory"] = current_memory_json(device);
    const auto unused = report.unused_share(device.key);
    row["avg_fragmentation"] = nullable(unused);
    row["unknown_because"] = unused ? Json(nullptr) : Json(no_fragmentation_text(report, device));
    object["devices"][device.key] = std::move(row);
  }
  object["recorded"] = recorded_json(report);
  for (Json& row : object["recorded"]) row["fragmentation"] = nullptr;
  for (const RecordedFragmentation& of : report.of_recorded) {
    object["recorded"][of.process]["fragmentation"] = to_object(of.fragmentation);
  }
  object["processes"] = processes_json(report.state);
  return print_report(object);
}

std::string to_json(const RiskChange& change) {
  return change_json(change).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tidemark
