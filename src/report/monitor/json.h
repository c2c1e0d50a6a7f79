// The reports of commands that watch a machine, as JSON. Keys and units that the Python monitors before Tidemark had
// are theirs (MB are 2^20 bytes); beside them are fields with the unit in their names.
#pragma once

#include <string>

#include "monitor/watch_reports.h"

namespace tidemark {

[[nodiscard]] std::string to_json(const ProfileReport& report);
[[nodiscard]] std::string to_json(const OomReport& report);
[[nodiscard]] std::string to_json(const LeakReport& report);
[[nodiscard]] std::string to_json(const FragmentReport& report);

/// What listeners of changes get: {"timestamp", "device", "name", "before", "limit_bytes", "risk_assessment"}, on one
/// line.
[[nodiscard]] std::string to_json(const RiskChange& change);

}  // namespace tidemark
