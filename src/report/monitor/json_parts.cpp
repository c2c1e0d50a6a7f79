#include "report/monitor/json_parts.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "base/units.h"
#include "query/results/ledgers.h"
#include "report/monitor/risk.h"
#include "report/monitor/words.h"
#include "trace/event.h"

namespace tidemark {
namespace {

constexpr double kSecond = 1e9;

double seconds(std::uint64_t ns) {
  return static_cast<double>(ns) / kSecond;
}

Json peak_or_null(const WatchedUsage& used) {
  return used.empty() ? Json(nullptr) : Json(used.peak_bytes());
}

Json process_risk_json(const WatchedProcess& process, const WatchedDevice* device,
                       const std::optional<ProcessRisk>& risk) {
  if (!risk) return nullptr;
  Json object = risk_json(risk->risk, process_recommendation_text(process, device, *risk));
  object["limit_bytes"] = risk->limit_bytes;
  return object;
}

Json on_devices_json(const WatchedProcess& process, const MachineState& state) {
  Json devices = Json::object();
  for (const ProcessOnDevice& on : process.devices) {
    Json& row = devices[state.devices[on.device].key];
    row = {{"bytes", on.held ? nullable(on.bytes) : Json(nullptr)}, {"peak_bytes", peak_or_null(on.used)}};
    row["risk_assessment"] = process_risk_json(process, &state.devices[on.device], on.risk);
  }
  return devices;
}

// What is known of it on this machine; its RSS is read more often.
void add_on_host(Json& row, const WatchedProcess& process) {
  const bool known = process.on_host.has_value();
  const HostProcess seen = process.on_host.value_or(HostProcess());
  row["role"] = known ? Json(name_of(seen.role)) : Json(nullptr);
  row["number"] = nullable(seen.number);
  row["count"] = nullable(seen.count);
  row["parent_pid"] = seen.parent_pid < 0 ? Json(nullptr) : Json(seen.parent_pid);
  Json pages = to_object(seen.pages);
  pages.erase("rss_bytes");
  row.update(pages);
}

Json interval_json(const std::optional<Interval>& interval) {
  if (!interval) return nullptr;
  return {{"expected", interval->expected}, {"earliest", interval->earliest}, {"latest", nullable(interval->latest)}};
}

}  // namespace

std::string iso_time(std::uint64_t wall_ns) {
  const auto whole = static_cast<std::time_t>(wall_ns / 1'000'000'000);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}+00:00", fmt::gmtime(whole), wall_ns % 1'000'000'000 / 1000);
}

Json run_json(const WatchRun& run, const char* command) {
  Json object;
  object["timestamp"] = iso_time(run.state.now_wall_ns);
  object["command"] = command;
  object["started"] = iso_time(run.state.wall_ns(0));
  object["duration_seconds"] = seconds(run.state.now_ns);
  object["interval_seconds"] = run.interval_seconds;
  object["ended_by"] = name_of(run.end);
  object["pid"] = nullable(run.pid);
  object["notes"] = watch_notes(run);
  return object;
}

Json device_identity_json(const WatchedDevice& device) {
  Json object;
  object["name"] = nullable_text(device.info.name);
  object["vendor"] = nullable_text(device.info.vendor);
  object["uuid"] = nullable_text(device.info.uuid);
  object["bus_id"] = nullable_text(device.info.bus_id);
  object["lost"] = nullable_text(device.lost);
  return object;
}

Json current_memory_json(const WatchedDevice& device) {
  const auto used = device.used_bytes();
  const auto total = device.info.total_bytes;
  const bool known = used && total.value_or(0) > 0;
  return {
      {"allocated", nullable(used)},
      {"free", nullable(device.free_bytes())},
      {"total", nullable(total)},
      {"utilization", known ? Json(static_cast<double>(*used) / static_cast<double>(*total) * 100) : Json(nullptr)}};
}

Json history_json(const WatchedUsage& used) {
  Json object = {{"time_seconds", Json::array()},
                 {"used_bytes", Json::array()},
                 {"low_bytes", Json::array()},
                 {"peak_bytes", Json::array()}};
  for (const WatchedUsagePoint& point : used.points()) {
    object["time_seconds"].push_back(seconds(point.end_ns));
    object["used_bytes"].push_back(point.last_bytes);
    object["low_bytes"].push_back(point.low_bytes);
    object["peak_bytes"].push_back(point.high_bytes);
  }
  return object;
}

Json processes_json(const MachineState& state) {
  Json processes = Json::array();
  for (const WatchedProcess& process : state.processes) {
    Json& row = processes.emplace_back();
    row = {{"pid", process.pid},
           {"name", nullable_text(process.name)},
           {"kind", name_of(process.kind)},
           {"ended", process.ended},
           {"first_seen_seconds", seconds(process.first_seen_ns)},
           {"last_seen_seconds", seconds(process.last_seen_ns)},
           {"devices", on_devices_json(process, state)},
           {"rss_bytes", nullable(process.rss_bytes)},
           {"peak_rss_bytes", peak_or_null(process.rss)},
           {"pss_bytes", nullable(process.pss_bytes)},
           {"peak_pss_bytes", peak_or_null(process.pss)}};
    row["risk_assessment"] = process_risk_json(process, nullptr, process.risk);
    add_on_host(row, process);
  }
  return processes;
}

// Only where there is something to say.
void add_lag(Json& row, const RecordingLag& lag) {
  if (!lag.is_known()) return;
  row["behind_seconds"] = nullable(lag.behind_seconds);
  row["behind_bytes"] = lag.behind_bytes;
  row["skipped_events"] = lag.skipped_events;
  row["skipped_until_ns"] = nullable(lag.skipped_until_ns);
}

Json recorded_json(const WatchRun& run) {
  Json rows = Json::array();
  for (const RecordedProcess& process : run.recorded) {
    Json devices = Json::object();
    for (const RecordedDevice& on : process.devices) {
      devices[to_string(on.device)] = {{"device", nullable_text(on.key)},
                                       {"allocated_bytes", on.allocated_bytes},
                                       {"reserved_bytes", nullable(on.reserved_bytes)},
                                       {"peak_allocated_bytes", nullable(on.most_allocated())},
                                       {"peak_reserved_bytes", nullable(on.most_reserved())},
                                       {"avg_unused_share", nullable(on.unused_share.mean())},
                                       {"max_unused_share", nullable(on.unused_share.most())},
                                       {"num_snapshots", on.allocated.sample_count()}};
    }
    rows.push_back({{"pid", process.recording.pid},
                    {"command", process.recording.command},
                    {"rank", nullable(process.recording.rank)},
                    {"file", process.recording.path},
                    {"state", name_in(kFollowStateNames, process.state)},
                    {"problem", nullable_text(process.problem)},
                    {"steps", nullable(process.steps)},
                    {"cuda_pinned_bytes", nullable(process.cuda_pinned_bytes)},
                    {"killed", JsonObject::json_of(process.killed)},
                    {"devices", std::move(devices)}});
    add_lag(rows.back(), process.lag);
  }
  return rows;
}

Json host_json(const WatchedHost& host) {
  const MemoryParts& parts = host.parts();
  return {{"total_bytes", nullable(host.memory.total_bytes)},
          {"available_bytes", nullable(host.memory.available_bytes)},
          {"limit_bytes", nullable(host.limit_bytes())},
          {"limited_by", host.limit_bytes() ? Json(host.limited_by_cgroup() ? "cgroup" : "machine") : Json(nullptr)},
          {"used_bytes", nullable(host.used_bytes())},
          {"peak_bytes", peak_or_null(host.used)},
          {"anon_bytes", nullable(parts.anon_bytes)},
          {"cache_bytes", nullable(parts.cache_bytes)},
          {"shmem_bytes", nullable(parts.shmem_bytes)},
          {"kernel_bytes", nullable(parts.kernel_bytes)},
          {"socket_bytes", nullable(parts.socket_bytes)},
          {"swap_bytes", nullable(parts.swap_bytes)},
          {"cgroup_pid", nullable(host.cgroup_pid)},
          {"cgroup_folder", nullable_text(host.cgroup_folder)},
          {"cgroup_usage_bytes", nullable(host.cgroup_usage_bytes)},
          {"cgroup_inactive_file_bytes", nullable(host.cgroup_inactive_file_bytes)},
          {"cgroup_oom_kills", nullable(host.cgroup_oom_kills)},
          {"cgroup_oom_kills_at_start", nullable(host.cgroup_oom_kills_at_start)}};
}

Json risk_json(const RiskAssessment& risk, const std::string& recommendation) {
  const auto in_mib = [](double bytes) { return bytes / static_cast<double>(kMiB); };
  const bool grows_or_not = risk.pattern != UsagePattern::unknown;  // is known
  Json object;
  object["risk_level"] = name_of(risk.level);
  object["confidence"] = nullable(risk.confidence);
  object["current_usage_percent"] = nullable(risk.used_percent);
  object["growth_rate_mb_per_sec"] = grows_or_not ? Json(in_mib(risk.growth_bytes_per_second)) : Json(nullptr);
  object["predicted_oom_time_seconds"] = risk.seconds_to_limit ? Json(risk.seconds_to_limit->expected) : Json(nullptr);
  object["recommendation"] = recommendation;
  object["pattern"] = name_of(risk.pattern);
  object["growth_error_mb_per_sec"] = grows_or_not ? Json(in_mib(risk.growth_error_bytes_per_second)) : Json(nullptr);
  object["seconds_to_limit"] = interval_json(risk.seconds_to_limit);
  object["steps_to_limit"] = interval_json(risk.steps_to_limit);
  object["evidence"] = {{"sample_count", risk.sample_count},
                        {"span_seconds", risk.span_seconds},
                        {"change_points", risk.change_points},
                        {"period_seconds", nullable(risk.period_seconds)}};
  return object;
}

std::string print_report(const Json& object) {
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tidemark
