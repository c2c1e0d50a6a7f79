// The host's memory by what holds it, as JSON objects.
#pragma once

#include "analyze/ledger/ledger.h"
#include "report/common/json_parts.h"

namespace tidemark {

/// {"rss_bytes", "anon_bytes", ...}.
Json pages_json(const ProcessPages& pages);
/// {"time_ns", "scope", "used_bytes", "limit_bytes", "lines", "processes", ...}; null where there is none.
Json host_ledger_json(const std::optional<HostBreakdown>& ledger);
/// [{"time_ns", "process", "evidence", "scope", ...}]: of a recording that is being written.
Json killed_json(const std::vector<KilledProcess>& killed);
/// [{"time_ns", "process", "evidence", "scope", "text", ...}].
Json kills_json(const std::vector<HostKill>& kills);
Json host_points_json(const std::vector<HostPoint>& points);

}  // namespace tidemark
