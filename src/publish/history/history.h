// The content of a history file.
//
// Times are milliseconds since 1970, sizes bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "monitor/machine_state.h"

namespace tidemark {

/// Covers all samples in a span of time.
struct HistoryPoint {
  std::int64_t time_ms = 0;  ///< its beginning
  std::int64_t span_ms = 0;
  std::uint64_t high_bytes = 0;
  std::uint64_t mean_bytes = 0;
};

struct HistoryProcess {
  std::int64_t pid = 0;
  std::string name;  ///< empty if unknown
  std::int64_t first_ms = 0;
  std::int64_t last_ms = 0;
  std::uint64_t peak_bytes = 0;
  std::int64_t peak_ms = 0;
};

/// A GPU, or the host's memory.
struct HistoryDevice {
  std::string id;                            ///< UUID, PCI address, or "host"
  std::string key;                           ///< "0", "cpu"
  std::string name;                          ///< of the model; empty for the host
  std::optional<std::uint64_t> limit_bytes;  ///< the latest one
  std::int64_t first_ms = 0;
  std::int64_t last_ms = 0;
  std::uint64_t samples = 0;
  std::uint64_t peak_bytes = 0;
  std::int64_t peak_ms = 0;
  std::uint64_t mean_bytes = 0;
  std::uint64_t last_bytes = 0;           ///< the mean of the last point
  std::vector<HistoryPoint> points;       ///< at most HistoryQuery::most_points
  std::vector<HistoryProcess> processes;  ///< highest peak first; at most kMaxHistoryProcesses
  std::uint64_t more_processes = 0;
};

struct HistoryRisk {
  std::int64_t time_ms = 0;
  std::string device;  ///< its id
  std::string key;
  std::string before;  ///< level: "low", "medium", "high", "critical"
  std::string level;
  std::string assessment;  ///< JSON
};

struct History {
  std::string path;
  std::optional<std::int64_t> since_ms;  ///< as requested
  std::int64_t until_ms = 0;
  std::vector<HistoryDevice> devices;
  std::vector<HistoryRisk> risks;  ///< the latest ones, in order of time
  std::uint64_t earlier_risks = 0;
};

inline constexpr std::size_t kMaxHistoryProcesses = 50;  ///< for each device
inline constexpr std::size_t kMaxHistoryRisks = 200;

struct HistoryQuery {
  std::optional<std::int64_t> since_ms;  ///< std::nullopt: from the beginning
  std::int64_t until_ms = 0;
  std::vector<std::string> devices = {};  ///< keys or ids; empty: all
  std::int64_t most_points = 600;
};

/// The error names the file and the problem.
[[nodiscard]] Result<History> read_history(const std::string& path, const HistoryQuery& query);

/// The devices and their use over time; everything else is unknown. Times count from the first point, with its wall
/// time in MachineState::wall_ns(0).
[[nodiscard]] MachineState as_state(const History& history);

}  // namespace tidemark
