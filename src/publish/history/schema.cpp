#include "publish/history/schema.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace tidemark {
namespace {

constexpr std::int64_t kApplicationId = 0x54494445;  // "TIDE"

struct Table {
  std::string_view name;
  std::string_view sql;
};

// Times are milliseconds since 1970, sizes bytes. `device` is the same tomorrow (a UUID, "host"); `key` is what options
// call it. A series without a PID (0) is of the whole memory. A point is of all samples within `span` from `time` on.
constexpr std::array<Table, 3> kTables = {{
    {"series",
     "CREATE TABLE series(id INTEGER PRIMARY KEY, device TEXT NOT NULL, key TEXT NOT NULL, name TEXT NOT NULL, "
     "pid INTEGER NOT NULL, process TEXT NOT NULL, UNIQUE(device, key, pid, process))"},
    {"points",
     "CREATE TABLE points(series INTEGER NOT NULL, time INTEGER NOT NULL, span INTEGER NOT NULL, high INTEGER NOT "
     "NULL, "
     "mean INTEGER NOT NULL, count INTEGER NOT NULL, bound INTEGER, PRIMARY KEY(series, time)) WITHOUT ROWID"},
    {"risks",
     "CREATE TABLE risks(time INTEGER NOT NULL, device TEXT NOT NULL, key TEXT NOT NULL, before TEXT NOT NULL, "
     "level TEXT NOT NULL, assessment TEXT NOT NULL)"},
}};

}  // namespace

SchemaState schema_of(Database& database) {
  const auto objects = database.number("SELECT count(*) FROM sqlite_schema");
  if (!objects) return SchemaState::unknown;
  const auto application = database.number("PRAGMA application_id");
  const auto version = database.number("PRAGMA user_version");
  if (*objects == 0 && application.value_or(0) == 0) return SchemaState::empty;
  if (application != kApplicationId) return SchemaState::foreign;
  if (version.value_or(0) > kHistoryVersion) return SchemaState::newer;
  // Tables as we make them and nothing else: what a file from elsewhere has could run when it is read.
  for (const Table& table : kTables) {
    Statement same = database.prepare("SELECT count(*) FROM sqlite_schema WHERE name = ?1 AND sql = ?2");
    same.bind(1, table.name).bind(2, table.sql);
    if (!same.step()) return SchemaState::unknown;
    if (same.integer(0) != 1) return SchemaState::foreign;
  }
  return SchemaState::ours;
}

bool is_whole(Database& database) {
  Statement check = database.prepare("PRAGMA integrity_check(1)");
  return check.step() && check.text(0) == "ok";
}

bool create_schema(Database& database) {
  std::string statements = "BEGIN IMMEDIATE;";
  for (const Table& table : kTables) statements += fmt::format("{};", table.sql);
  statements += fmt::format("PRAGMA application_id={};PRAGMA user_version={};COMMIT", kApplicationId, kHistoryVersion);
  // Outside of the transaction: SQLite allows it only there.
  return database.execute("PRAGMA auto_vacuum=INCREMENTAL") && database.execute(statements);
}

}  // namespace tidemark
