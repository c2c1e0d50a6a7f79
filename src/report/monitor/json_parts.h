// What the JSON reports of watched machines share.
#pragma once

#include <cstdint>
#include <string>

#include "monitor/watch_reports.h"
#include "report/common/json_parts.h"

namespace tidemark {

/// "2026-11-23T10:02:11.123456+00:00".
[[nodiscard]] std::string iso_time(std::uint64_t wall_ns);

/// "timestamp", "command", how long and how often, and "notes".
[[nodiscard]] Json run_json(const WatchRun& run, const char* command);
/// What the device is: "name", "vendor", "uuid", "bus_id", "lost".
[[nodiscard]] Json device_identity_json(const WatchedDevice& device);
/// {"allocated", "free", "total", "utilization"}.
[[nodiscard]] Json current_memory_json(const WatchedDevice& device);
/// {"time_seconds", "used_bytes", "low_bytes", "peak_bytes"}: arrays of one length.
[[nodiscard]] Json history_json(const WatchedUsage& used);
/// All, those that have ended too.
[[nodiscard]] Json processes_json(const MachineState& state);
/// What the allocators of recorded processes held: a row for each process.
[[nodiscard]] Json recorded_json(const WatchRun& run);
[[nodiscard]] Json host_json(const WatchedHost& host);
/// The evidence in full; `recommendation` is said of it.
[[nodiscard]] Json risk_json(const RiskAssessment& risk, const std::string& recommendation);
/// Indented text.
[[nodiscard]] std::string print_report(const Json& object);

}  // namespace tidemark
