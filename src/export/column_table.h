// A recording's blocks and events as tables with columns: the single definition for CSV and Parquet files and the
// tables of the Python package.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "base/result.h"
#include "export/format.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

struct Column {
  enum class Kind : std::uint8_t {
    number,   ///< a signed one, in 64 bits
    address,  ///< any 64 bits, shown in hexadecimal; also handles
    text,     ///< one of a list of texts
  };
  std::string name;
  Kind kind = Kind::number;
  bool nullable = false;
  /// The values of all rows if they are contiguous in the store; otherwise empty.
  std::span<const std::uint64_t> direct = {};
  /// The value in a row: for a text, its index in words(). nullopt: unknown or absent.
  std::function<std::optional<std::uint64_t>(std::size_t row)> value = {};
  /// The distinct texts: printable UTF-8. Computed on the first call, and then kept. Empty: the column is not a text.
  std::function<const std::vector<std::string>&()> words = {};
};

/// Rows are numbered from 0. Reads from the store that it was made from, and keeps it. Safe to read from several
/// threads.
struct ColumnTable {
  std::size_t row_count = 0;
  std::vector<Column> columns;
};

/// Source of the tables.
struct TableSource {
  std::shared_ptr<const Store> store;
  std::shared_ptr<const Attribution> attribution;  ///< null: without the columns for owners of memory
  std::shared_ptr<Symbols> symbols = nullptr;      ///< names the stacks, by one thread; null: one made for that
};

/// A row for each of the blocks, or for each block of the store in order of birth if `blocks` is null.
[[nodiscard]] ColumnTable block_table(const TableSource& source,
                                      const std::shared_ptr<const std::vector<BlockId>>& blocks = nullptr);

/// The blocks of an export. Valid as long as the arguments. Fails if the device does not exist.
[[nodiscard]] Result<ColumnTable> exported_table(const Store& store, Symbols& symbols, const ExportOptions& options);

/// A row for each allocation and each free of a recorded block, in order of time.
[[nodiscard]] ColumnTable event_table(const TableSource& source);

}  // namespace tidemark
