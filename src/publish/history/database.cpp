#include "publish/history/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/scoped_fd.h"
#include "publish/history/file_system.h"

namespace tidemark {

namespace {

constexpr int kPatienceWithLocksMs = 2000;
constexpr int kMaxTextBytes = 1 << 20;

constexpr std::int64_t kApplicationId = 0x54494445;  // "TIDE"

struct Table {
  std::string_view name;
  std::string_view sql;
};

// Times are milliseconds since 1970, sizes bytes. `device` is a permanent id (a UUID, "host"); `key` is its name in
// options. A series with PID 0 is for the whole memory. A point covers all samples within `span` from `time` on.
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

bool DatabaseError::is_error() const {
  return code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE;
}
bool DatabaseError::is_full() const {
  return code == SQLITE_FULL || code == SQLITE_IOERR;
}
bool DatabaseError::is_busy() const {
  return code == SQLITE_BUSY || code == SQLITE_LOCKED;
}
bool DatabaseError::is_damaged() const {
  return code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
}

void Statement::Close::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}
void Database::Close::operator()(sqlite3* database) const {
  sqlite3_close(database);
}

Statement& Statement::bind(int parameter, std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), parameter, value);
  return *this;
}

Statement& Statement::bind(int parameter, std::string_view value) {
  sqlite3_bind_text(statement_.get(), parameter, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
  return *this;
}

Statement& Statement::bind(int parameter, const std::optional<std::int64_t>& value) {
  if (value) return bind(parameter, *value);
  sqlite3_bind_null(statement_.get(), parameter);
  return *this;
}

bool Statement::step() {
  return statement_ != nullptr && sqlite3_step(statement_.get()) == SQLITE_ROW;
}

bool Statement::run() {
  if (statement_ == nullptr) return false;
  int code = SQLITE_ROW;
  while (code == SQLITE_ROW) code = sqlite3_step(statement_.get());
  sqlite3_reset(statement_.get());
  return code == SQLITE_DONE;
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::optional<std::int64_t> Statement::maybe(int column) const {
  if (sqlite3_column_type(statement_.get(), column) == SQLITE_NULL) return std::nullopt;
  return integer(column);
}

std::string Statement::text(int column) const {
  const auto* const bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return bytes == nullptr ? "" : std::string(bytes, static_cast<std::size_t>(size));
}

std::optional<Database> Database::open(const std::string& path, DatabaseUse use, DatabaseError& error) {
  const bool writing = use == DatabaseUse::write;
  if (writing) {
    // SQLite would create it readable for others. Files beside it get the same permissions.
    const ScopedFd created(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600));
    if (!created) {
      error = {SQLITE_CANTOPEN, std::strerror(errno)};
      return std::nullopt;
    }
  }
  // Otherwise some names do not mean files: ":memory:".
  const std::string file = path.starts_with('/') ? path : "./" + path;
  const auto files = std::make_shared<DatabaseFiles>();
  sqlite3* opened = nullptr;
  const int flags = (writing ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(file.c_str(), &opened, flags, files->name());
  Database database;
  database.database_ = {opened, Close{files}};
  if (code != SQLITE_OK) {
    error = opened == nullptr ? DatabaseError{code, sqlite3_errstr(code)} : database.error();
    return std::nullopt;
  }
  sqlite3_busy_timeout(opened, kPatienceWithLocksMs);
  sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, kMaxTextBytes);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  database.execute("PRAGMA cell_size_check=ON");
  return database;
}

bool Database::execute(const std::string& statements) {
  return sqlite3_exec(database_.get(), statements.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
}

std::optional<std::int64_t> Database::number(const std::string& query) {
  Statement statement = prepare(query);
  if (!statement.step()) return std::nullopt;
  return statement.integer(0);
}

Statement Database::prepare(std::string_view text) {
  sqlite3_stmt* prepared = nullptr;
  sqlite3_prepare_v2(database_.get(), text.data(), static_cast<int>(text.size()), &prepared, nullptr);
  Statement statement;
  statement.statement_.reset(prepared);
  return statement;
}

DatabaseError Database::error() const {
  const std::string& refused = database_.get_deleter().files->refused();
  if (!refused.empty()) return {SQLITE_PERM, refused};
  return {sqlite3_errcode(database_.get()) & 0xff, sqlite3_errmsg(database_.get())};
}

std::int64_t Database::last_row() const {
  return sqlite3_last_insert_rowid(database_.get());
}

SchemaState schema_of(Database& database) {
  const auto objects = database.number("SELECT count(*) FROM sqlite_schema");
  if (!objects) return SchemaState::unknown;
  const auto application = database.number("PRAGMA application_id");
  const auto version = database.number("PRAGMA user_version");
  if (*objects == 0 && application.value_or(0) == 0) return SchemaState::empty;
  if (application != kApplicationId) return SchemaState::foreign;
  if (version.value_or(0) > kHistoryVersion) return SchemaState::newer;
  // Exactly the tables that Tidemark creates, without indexes of expressions: those of a foreign file could run code
  // when it is read. Statistics (ANALYZE), views and triggers do not.
  const auto others = database.number(
      "SELECT count(*) FROM sqlite_schema WHERE type IN ('table', 'index') AND sql IS NOT NULL AND name NOT LIKE "
      "'sqlite_stat_'");
  if (!others) return SchemaState::unknown;
  if (*others != std::int64_t{kTables.size()}) return SchemaState::foreign;
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
  // Outside of the transaction, as SQLite requires.
  return database.execute("PRAGMA auto_vacuum=INCREMENTAL") && database.execute(statements);
}

}  // namespace tidemark
