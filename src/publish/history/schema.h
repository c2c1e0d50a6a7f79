// The tables of a history file.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "publish/history/database.h"

namespace tidemark {

inline constexpr std::int64_t kHistoryVersion = 1;

enum class SchemaState : std::uint8_t {
  ours,
  empty,    ///< a new file
  newer,    ///< of a version that this program does not know
  foreign,  ///< another program's database, or a changed one
  unknown,  ///< it cannot be read: the error is the database's
};
[[nodiscard]] SchemaState schema_of(Database& database);

/// Whether the file is as SQLite writes it, indexes and orders included, so that no query fails later. Reads all of it:
/// 45 MB, a million points, take 0.15 s.
[[nodiscard]] bool is_whole(Database& database);

/// For an empty file. False after an error.
bool create_schema(Database& database);

}  // namespace tidemark
