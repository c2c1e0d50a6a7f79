// The part of SQLite that the history needs, and the tables of a history file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tidemark {

class DatabaseFiles;

/// An error of SQLite.
struct DatabaseError {
  int code = 0;  ///< SQLite's primary result code
  std::string message;

  [[nodiscard]] bool is_error() const;    ///< whether it is an error
  [[nodiscard]] bool is_full() const;     ///< no space on the disk
  [[nodiscard]] bool is_busy() const;     ///< another program is writing it
  [[nodiscard]] bool is_damaged() const;  ///< it is not a database, or is damaged
};

/// A prepared statement. Parameters are numbered from 1, columns from 0. One thread at a time.
class Statement {
 public:
  Statement& bind(int parameter, std::int64_t value);
  Statement& bind(int parameter, std::string_view value);
  Statement& bind(int parameter, const std::optional<std::int64_t>& value);
  /// True if there is a row. False at the end and after an error, which the database has.
  [[nodiscard]] bool step();
  /// Runs it to its end, and resets it for other parameters. False after an error.
  bool run();

  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] std::optional<std::int64_t> maybe(int column) const;
  [[nodiscard]] std::string text(int column) const;  ///< any bytes

 private:
  friend class Database;
  struct Close {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Close> statement_;
};

enum class DatabaseUse : std::uint8_t { read, write };

/// One thread at a time. Content that other programs put into the file, or beside it, can only be read: no views,
/// triggers or functions of the schema run. See DatabaseFiles.
class Database {
 public:
  /// For writing, a missing file is created, for its owner only.
  static std::optional<Database> open(const std::string& path, DatabaseUse use, DatabaseError& error);

  /// Runs several statements. False after an error.
  bool execute(const std::string& statements);
  /// The result of a query; std::nullopt after an error, or without a row.
  std::optional<std::int64_t> number(const std::string& query);
  [[nodiscard]] Statement prepare(std::string_view text);
  /// Of the latest call.
  [[nodiscard]] DatabaseError error() const;
  [[nodiscard]] std::int64_t last_row() const;

 private:
  struct Close {
    std::shared_ptr<DatabaseFiles> files;  // until it is closed
    void operator()(sqlite3* database) const;
  };
  std::unique_ptr<sqlite3, Close> database_;
};

inline constexpr std::int64_t kHistoryVersion = 1;

enum class SchemaState : std::uint8_t {
  ours,
  empty,    ///< a new file
  newer,    ///< of a version unknown to this program
  foreign,  ///< another program's database, or one with foreign tables or indexes
  unknown,  ///< it cannot be read: the database has the error
};
[[nodiscard]] SchemaState schema_of(Database& database);

/// Whether the file is consistent, including indexes and order, so that no query fails later. Reads all of it: 45 MB, a
/// million points, take 0.15 s.
[[nodiscard]] bool is_whole(Database& database);

/// For an empty file. False after an error.
bool create_schema(Database& database);

}  // namespace tidemark
