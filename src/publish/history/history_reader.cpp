#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "base/arithmetic.h"
#include "monitor/device_keys.h"
#include "publish/history/database.h"
#include "publish/history/history.h"

namespace tidemark {

namespace {

constexpr std::int64_t kMaxHistoryDevices = 1024;

// Sizes are negative only in a file that another program wrote.
std::uint64_t size_of(std::int64_t value) {
  return value < 0 ? 0 : static_cast<std::uint64_t>(value);
}

// The same for times before 1970 and after 2255, which do not fit into nanoseconds.
std::int64_t time_of(std::int64_t value) {
  constexpr std::int64_t kLatestMs = 9'000'000'000'000;
  return std::clamp<std::int64_t>(value, 0, kLatestMs);
}

struct Window {
  std::int64_t since;
  std::int64_t until;
};

Error unreadable(const std::string& path, const DatabaseError& error) {
  if (error.is_damaged()) return Error{fmt::format("{}: damaged, or no history of Tidemark ({})", path, error.message)};
  if (error.is_busy()) return Error{fmt::format("{}: another program has it locked; try again", path)};
  return Error{fmt::format("{}: cannot be read: {}", path, error.message)};
}

class Reader {
 public:
  Reader(Database& database, const HistoryQuery& query)
      : database_(database),
        query_(query),
        window_{query.since_ms.value_or(std::numeric_limits<std::int64_t>::min()), query.until_ms} {}

  /// If it fails, `history` is incomplete.
  Result<void> read(History& history) {
    if (auto found = read_devices(history); !found) return found;
    for (HistoryDevice& device : history.devices) {
      read_peak(device);
      read_points(device);
      read_processes(device);
    }
    std::erase_if(history.devices, [](const HistoryDevice& device) { return device.samples == 0; });
    read_risks(history);
    return failed_ ? unreadable(history.path, *failed_) : Result<void>();
  }

 private:
  // False at the end, and after an error, so that missing rows do not count as absent.
  bool next(Statement& statement) {
    if (failed_) return false;
    if (statement.step()) return true;
    if (DatabaseError error = database_.error(); error.is_error()) failed_ = std::move(error);
    return false;
  }

  [[nodiscard]] bool is_chosen(const std::string& key, const std::string& id) const {
    const auto& chosen = query_.devices;
    return chosen.empty() || std::find(chosen.begin(), chosen.end(), key) != chosen.end() ||
           std::find(chosen.begin(), chosen.end(), id) != chosen.end();
  }

  Statement in_window(std::string_view text) {
    Statement statement = database_.prepare(text);
    statement.bind(1, window_.since).bind(2, window_.until);
    return statement;
  }

  // A requested device that was never seen is a mistake, not an empty answer.
  [[nodiscard]] Result<void> check_choice(const std::string& path, const std::vector<std::string>& names,
                                          const std::vector<std::string>& keys) const {
    if (keys.empty()) return {};  // a monitor has just begun
    for (const std::string& chosen : query_.devices) {
      if (std::find(names.begin(), names.end(), chosen) != names.end()) continue;
      return Error{fmt::format("--device {}: {} has no such device (it has {})", chosen, path, fmt::join(keys, ", "))};
    }
    return {};
  }

  Result<void> read_devices(History& history) {
    std::vector<std::string> names;  // names by which they can be requested
    std::vector<std::string> keys;
    Statement row =
        database_.prepare("SELECT device, key, max(name) FROM series GROUP BY device, key ORDER BY key LIMIT ?1");
    row.bind(1, kMaxHistoryDevices);
    while (next(row)) {
      HistoryDevice device;
      device.id = row.text(0);
      device.key = row.text(1);
      device.name = row.text(2);
      names.insert(names.end(), {device.id, device.key});
      if (std::find(keys.begin(), keys.end(), device.key) == keys.end()) keys.push_back(device.key);
      if (is_chosen(device.key, device.id)) history.devices.push_back(std::move(device));
    }
    return failed_ ? Result<void>() : check_choice(history.path, names, keys);
  }

  void read_peak(HistoryDevice& device) {
    // With max() alone, SQLite takes the other columns from the row of the maximum.
    Statement peak = in_window(
        "SELECT time, max(high) FROM points JOIN series ON series.id = series "
        "WHERE device = ?3 AND key = ?4 AND pid = 0 AND time BETWEEN ?1 AND ?2");
    peak.bind(3, device.id).bind(4, device.key);
    if (next(peak)) {
      device.peak_ms = time_of(peak.integer(0));
      device.peak_bytes = size_of(peak.integer(1));
    }
    Statement last = in_window(
        "SELECT max(time), mean, bound FROM points JOIN series ON series.id = series "
        "WHERE device = ?3 AND key = ?4 AND pid = 0 AND time BETWEEN ?1 AND ?2");
    last.bind(3, device.id).bind(4, device.key);
    if (next(last)) {
      device.last_bytes = size_of(last.integer(1));
      if (const auto bound = last.maybe(2)) device.limit_bytes = size_of(*bound);
    }
    Statement all = in_window(
        "SELECT min(time), max(time + span), CAST(total(count) AS INTEGER), "
        "CAST(total(1.0 * mean * count) / max(1.0, total(count)) AS INTEGER) FROM points JOIN series ON series.id = "
        "series "
        "WHERE device = ?3 AND key = ?4 AND pid = 0 AND time BETWEEN ?1 AND ?2");
    all.bind(3, device.id).bind(4, device.key);
    if (!next(all)) return;
    device.first_ms = time_of(all.integer(0));
    device.last_ms = time_of(all.integer(1));
    device.samples = size_of(all.integer(2));
    device.mean_bytes = size_of(all.integer(3));
  }

  void read_points(HistoryDevice& device) {
    if (device.last_ms <= device.first_ms) return;
    const std::int64_t width = std::max<std::int64_t>(1, (device.last_ms - device.first_ms) / query_.most_points + 1);
    Statement row = in_window(
        "SELECT min(time), max(time + span) - min(time), max(high), "
        "CAST(total(1.0 * mean * count) / max(1.0, total(count)) AS INTEGER) FROM points JOIN series ON series.id = "
        "series "
        "WHERE device = ?3 AND key = ?4 AND pid = 0 AND time BETWEEN ?1 AND ?2 GROUP BY (time - ?5) / ?6 ORDER BY 1");
    row.bind(3, device.id).bind(4, device.key).bind(5, device.first_ms).bind(6, width);
    while (next(row) && static_cast<std::int64_t>(device.points.size()) <= query_.most_points) {
      device.points.push_back(
          {time_of(row.integer(0)), time_of(row.integer(1)), size_of(row.integer(2)), size_of(row.integer(3))});
    }
  }

  void read_processes(HistoryDevice& device) {
    Statement row = in_window(
        "SELECT pid, process, time, max(high), min(time), max(time + span) FROM points JOIN series ON series.id = "
        "series "
        "WHERE device = ?3 AND key = ?4 AND pid != 0 AND time BETWEEN ?1 AND ?2 GROUP BY series ORDER BY 4 DESC, 5, 1");
    row.bind(3, device.id).bind(4, device.key);
    while (next(row)) {
      if (device.processes.size() == kMaxHistoryProcesses) {
        ++device.more_processes;
        continue;
      }
      HistoryProcess process;
      process.pid = row.integer(0);
      process.name = row.text(1);
      process.peak_ms = time_of(row.integer(2));
      process.peak_bytes = size_of(row.integer(3));
      process.first_ms = time_of(row.integer(4));
      process.last_ms = time_of(row.integer(5));
      device.processes.push_back(std::move(process));
    }
  }

  void read_risks(History& history) {
    Statement row = in_window(
        "SELECT time, device, key, before, level, assessment FROM risks WHERE time BETWEEN ?1 AND ?2 ORDER BY time "
        "DESC");
    while (next(row)) {
      HistoryRisk risk{time_of(row.integer(0)), row.text(1), row.text(2), row.text(3), row.text(4), row.text(5)};
      if (!is_chosen(risk.key, risk.device)) continue;
      if (history.risks.size() < kMaxHistoryRisks) {
        history.risks.push_back(std::move(risk));
      } else {
        ++history.earlier_risks;
      }
    }
    std::reverse(history.risks.begin(), history.risks.end());
  }

  Database& database_;
  const HistoryQuery& query_;
  Window window_;
  std::optional<DatabaseError> failed_;
};

constexpr std::uint64_t kNsInOneMs = 1'000'000;

}  // namespace

Result<History> read_history(const std::string& path, const HistoryQuery& query) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) {
    return Error{
        fmt::format("{}: cannot be read: {} (monitors write it with --history {})", path, std::strerror(errno), path)};
  }
  if (!S_ISREG(facts.st_mode)) return Error{path + ": not a file"};
  History history;
  history.path = path;
  history.since_ms = query.since_ms;
  history.until_ms = query.until_ms;
  DatabaseError error;
  auto database = Database::open(path, DatabaseUse::read, error);
  if (!database) return unreadable(path, error);
  const SchemaState schema = schema_of(*database);
  switch (schema) {
    case SchemaState::unknown:
      return unreadable(path, database->error());
    case SchemaState::foreign:
      return Error{path +
                   ": not a history of Tidemark, or with tables or indexes of another program (monitors write one with "
                   "--history FILE)"};
    case SchemaState::newer:
      return Error{path + ": made by a newer version of Tidemark; read it with that"};
    case SchemaState::empty:  // a monitor has just begun
    case SchemaState::ours:
      break;
  }
  if (!is_whole(*database)) {
    return Error{path + ": damaged (sqlite3 FILE .recover writes what can be saved into a new file)"};
  }
  if (schema == SchemaState::empty) return history;
  if (!database->execute("BEGIN")) return unreadable(path, database->error());  // one snapshot
  if (auto done = Reader(*database, query).read(history); !done) return done.error();
  return history;
}

MachineState as_state(const History& history) {
  std::int64_t begin_ms = std::numeric_limits<std::int64_t>::max();
  for (const HistoryDevice& device : history.devices) begin_ms = std::min(begin_ms, device.first_ms);
  MachineState state;
  state.devices_known = true;
  for (const HistoryDevice& past : history.devices) {
    WatchedDevice& device = state.devices.emplace_back();
    device.key = past.key;
    device.is_host = past.id == "host";
    device.info.name = past.name;
    device.info.uuid = past.id;
    device.info.total_bytes = past.limit_bytes;
    set_numbers(device.info, past.key);
    for (const HistoryPoint& point : past.points) {
      // Its highest moment, if known: points of a long time cover many minutes.
      const bool has_peak = past.peak_ms > point.time_ms && past.peak_ms < saturating_add(point.time_ms, point.span_ms);
      const std::int64_t since_ms = saturating_add(has_peak ? past.peak_ms : point.time_ms, -begin_ms);
      constexpr std::int64_t kMaxMs = std::numeric_limits<std::int64_t>::max() / 2'000'000;
      const auto time_ns = static_cast<std::uint64_t>(std::clamp<std::int64_t>(since_ms, 0, kMaxMs)) * kNsInOneMs;
      device.used.add(time_ns, point.mean_bytes, point.high_bytes);
      state.now_ns = std::max(state.now_ns, time_ns);
    }
  }
  if (!history.devices.empty()) {
    state.began_wall_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(begin_ms, 0)) * kNsInOneMs;
  }
  state.now_wall_ns = saturating_add(state.began_wall_ns, state.now_ns);
  return state;
}

}  // namespace tidemark
