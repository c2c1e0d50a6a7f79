// Tables in Arrow's memory format (the Arrow C data interface), for pyarrow, polars, DuckDB and pandas. Columns that
// are contiguous in the store are not copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "export/column_table.h"

// From the specification: https://arrow.apache.org/docs/format/CDataInterface.html
extern "C" {
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};
}

namespace tidemark::python {

/// Rows of one record batch of a stream: bounds a reader's memory besides the recording.
inline constexpr std::size_t kRowsInBatch = std::size_t{1} << 22;

using SharedTable = std::shared_ptr<const ColumnTable>;

/// A struct of int64, uint64 and dictionary<int32, utf8> columns. `*out` is released by its release().
void fill_schema(const ColumnTable& table, ArrowSchema* out);
/// Rows `begin` to `end`. Keeps the table, and with it the recording, until it is released. May take long: texts are
/// made at first use.
void fill_array(const SharedTable& table, std::size_t begin, std::size_t end, ArrowArray* out);
/// All rows, in batches.
void fill_stream(const SharedTable& table, std::size_t rows_in_batch, ArrowArrayStream* out);

}  // namespace tidemark::python
